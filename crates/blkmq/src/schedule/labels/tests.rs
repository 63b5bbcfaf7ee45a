//! Correct tables, and the errors of wrong ones.

use super::{LabelTable, REFUSED};
use crate::path::label::{List, Plug, RequeueRequest, Submit};

#[test]
fn a_line_is_of_one_label_and_a_star_of_the_others() {
    let text = "# label\n\nlist.*  -  -  refused no lists here\n\
        list.tag  Issue  Take  tries\nlist.restart - Recheck -\n";
    let table = LabelTable::read(text).expect("a table");
    let tag = table.row(List::Tag.label());
    assert_eq!((tag.action, tag.step), (Some("Issue"), Some("Take")));
    assert_eq!((tag.shown, tag.why), (Some("tries"), None));
    let head = table.row(List::Head.label());
    assert_eq!(
        (head.shown, head.why),
        (Some(REFUSED), Some("no lists here"))
    );
    assert_eq!(table.row(List::Restart.label()).shown, None);
    assert_eq!(table.row(Submit::Enter.label()), &super::Row::default());
}

#[test]
fn a_star_leaves_lines_before_it_alone() {
    let text = "plug.take - Take step\nplug.* - - refused no plugs\n";
    let table = LabelTable::read(text).expect("a table");
    assert_eq!(table.row(Plug::Take.label()).step, Some("Take"));
    assert_eq!(table.row(Plug::Run.label()).why, Some("no plugs"));
    assert_eq!(table.row(RequeueRequest::Add.label()).why, None);
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    let error = |text| LabelTable::read(text).expect_err("wrong");
    let offer = error("list.tag - - -\nlist.offer - - -\n");
    assert_eq!(offer, "line 2: there is no label list.offer");
    assert_eq!(error("lists.* - - -"), "line 1: no path lists has labels");
    let twice = error("list.tag - - -\nlist.tag - - -");
    assert_eq!(twice, "line 2: list.tag has a line already");
    assert!(error("list.tag Issue").contains("expected label, action, step"));
    assert!(error("list.tag - - refused").contains("a reason belongs to refused"));
    assert!(error("list.tag - - step because").contains("a reason belongs to refused"));
}
