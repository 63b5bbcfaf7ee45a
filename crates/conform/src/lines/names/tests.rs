use super::Names;

const A: &str = "00000000f88c0f3c";
const B: &str = "00000000108e6847";
const ONE: &str = "0000000000000001";
const TWO: &str = "0000000000000002";

#[test]
fn one_name_corresponds_to_one_other() {
    let mut names = Names::default();
    assert!(names.alike(
        &format!("q get_entity: {A} 3"),
        &format!("q get_entity: {ONE} 3")
    ));
    assert!(names.alike(&format!("q returned {A}"), &format!("q returned {ONE}")));
    assert!(!names.alike(&format!("q returned {A}"), &format!("q returned {TWO}")));
    assert!(!names.alike(&format!("q returned {B}"), &format!("q returned {ONE}")));
    assert!(names.alike(&format!("q returned {B}"), &format!("q returned {TWO}")));
}

#[test]
fn everything_else_is_compared_literally() {
    let mut names = Names::default();
    assert!(names.alike("bfq1S add_request 1", "bfq1S add_request 1"));
    assert!(!names.alike("bfq1S add_request 1", "bfq1S add_request 0"));
    assert!(!names.alike("bfq1S add_request 1", "bfq1S add_request 1 0"));
    assert!(!names.alike("bfq1S add_request 1", "bfq1S add_request"));
    assert!(!names.alike(&format!("put: {A} 3"), "put: 5 3"));
}

#[test]
fn what_is_introduced_or_has_no_reference_left_is_another_object() {
    let mut names = Names::default();
    let get = |rq: &str, q: &str| format!("q get_request {rq}: bfqq {q}, 2");
    assert!(names.alike(&get(A, B), &get(ONE, TWO)));
    // The request has been freed and another one is where it was.
    assert!(names.alike(&get(A, B), &get("0000000000000007", TWO)));
    assert!(names.alike(&format!("put_queue: {B} 1"), &format!("put_queue: {TWO} 1")));
    assert!(names.alike(&format!("q {B} 3"), "q 0000000000000009 3"));
}

#[test]
fn a_pointer_that_was_not_printed_is_any() {
    let mut names = Names::default();
    let unknown = "(____ptrval____)";
    assert!(names.alike(
        &format!("put_queue: {unknown} 3"),
        &format!("put_queue: {ONE} 3")
    ));
    assert!(names.alike(
        &format!("put_queue: {unknown} 3"),
        &format!("put_queue: {TWO} 3")
    ));
    assert!(!names.alike(&format!("put_queue: {unknown} 3"), "put_queue: 3 3"));
    assert!(!names.alike(
        &format!("put_queue: {ONE} 3"),
        &format!("put_queue: {unknown} 3")
    ));
}
