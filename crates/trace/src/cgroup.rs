//! Paths of control groups.

/// The path below the root without slashes at its ends, as `a/b`; empty: the root itself.
///
/// # Errors
/// A part of the path is empty, `.` or `..`: two paths would name one group, or one outside.
pub fn bare(path: &str) -> Result<&str, String> {
    let bare = path.trim_matches('/');
    let mut parts = bare.split('/');
    if !bare.is_empty() && parts.any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!(
            "`{path}` is no path of a group; expected one as a/b"
        ));
    }
    Ok(bare)
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn a_path_is_one_group() {
        for (path, expected) in [
            ("", ""),
            ("/", ""),
            ("a", "a"),
            ("/a/b/", "a/b"),
            ("a.b", "a.b"),
        ] {
            assert_eq!(bare(path), Ok(expected), "{path}");
        }
        for path in ["a//b", "..", "a/../b", "a/.", "./a"] {
            let error = bare(path).expect_err(path);
            assert!(error.contains(&format!("`{path}`")), "{error}");
        }
    }
}
