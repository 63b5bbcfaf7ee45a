//! "Did you mean": the nearest of a list of words.

/// The candidate nearest to `word`, if near enough to be a slip of the pen: letters more, less,
/// others, or two neighbours that changed places.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let budget = 1 + word.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= budget)
        .min()
        .map(|(_, candidate)| candidate)
}
