use super::{sets, values_of};

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_comma_in_quotes_belongs_to_a_value() {
    assert_eq!(values_of("1, 8,64"), ["1", "8", "64"]);
    assert_eq!(values_of("\"4k,8k\""), ["\"4k,8k\""]);
    assert_eq!(values_of("\"4k,8k\",'1,2',3"), ["\"4k,8k\"", "'1,2'", "3"]);
    assert_eq!(values_of("1,"), ["1", ""]);
}

#[test]
fn all_combinations_in_the_order_of_the_options() {
    let all = sets(&texts(&["a=1,2", "b=x", "c=3,4"])).unwrap();
    let want = [
        ["a=1", "b=x", "c=3"],
        ["a=1", "b=x", "c=4"],
        ["a=2", "b=x", "c=3"],
        ["a=2", "b=x", "c=4"],
    ];
    assert_eq!(all, want);
    assert_eq!(sets(&[]).unwrap(), [Vec::<String>::new()]);
    assert_eq!(sets(&texts(&["nonsense"])).unwrap(), [["nonsense"]]);
}

#[test]
fn bad_lists() {
    for (written, want) in [
        (vec!["a=1,"], "value 2 is empty"),
        (vec!["a=1,1"], "1 is there twice"),
        (vec!["a=1,2", "a=3,4"], "a has several values twice"),
    ] {
        let got = sets(&texts(&written)).unwrap_err().to_string();
        assert!(got.contains(want), "{written:?}: {got}");
    }
    let long: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let long = long.join(",");
    let got = sets(&[format!("a={long}"), format!("b={long}")]).unwrap_err();
    assert!(got.to_string().contains("more than 10000 combinations"));
}
