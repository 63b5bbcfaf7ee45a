use std::sync::Mutex;

use super::{Error, Fleet, FleetEvent, Stop};

#[test]
fn answers_and_errors_are_in_the_order_of_the_questions() {
    let items: Vec<u32> = (0..1000).collect();
    for jobs in [1, 4] {
        let fleet = Fleet::new(Some(jobs), Stop::default(), |_| {}).unwrap();
        let doubled = fleet.map(&items, |item| Ok(item * 2)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(d, i)| *d == i * 2));
        let refuse = |item: &u32| match item % 300 {
            299 => Err(Error::wrong("item", item.to_string())),
            _ => Ok(()),
        };
        let error = fleet.map(&items, refuse).unwrap_err();
        assert_eq!(error, Error::wrong("item", "299"));
    }
}

#[test]
fn a_stopped_fleet_gives_no_answer() {
    let stop = Stop::default();
    let fleet = Fleet::new(Some(2), stop.clone(), |_| {}).unwrap();
    let set = |_: &u32| {
        let _ = stop.set(());
        Ok(())
    };
    assert_eq!(fleet.map(&[1, 2, 3], set), Err(Error::Stopped));
}

/// Simulators take long to build: none is built for a run that cannot start.
#[test]
fn what_has_not_begun_does_not_begin_once_it_is_stopped() {
    let stop = Stop::default();
    let fleet = Fleet::new(Some(1), stop.clone(), |_| {}).unwrap();
    let begun = Mutex::new(0);
    let set = |_: &u32| {
        let _ = stop.set(());
        *begun.lock().unwrap() += 1;
        Ok(())
    };
    let ended = fleet.map_ended(&[0; 100], set).unwrap();
    assert_eq!((ended[0], &ended[1..]), (Some(()), &[None; 99][..]));
    assert_eq!(fleet.map(&[0; 100], set), Err(Error::Stopped));
    assert_eq!(*begun.lock().unwrap(), 1);
}

#[test]
fn every_run_is_reported() {
    static SEEN: Mutex<(usize, usize)> = Mutex::new((0, 0));
    let fleet = Fleet::new(Some(3), Stop::default(), |event| {
        let mut seen = SEEN.lock().unwrap();
        match event {
            FleetEvent::Begun(count) => seen.0 += count,
            FleetEvent::Ended => seen.1 += 1,
        }
    });
    fleet.unwrap().map(&[0; 17], |_| Ok(())).unwrap();
    assert_eq!(*SEEN.lock().unwrap(), (17, 17));
}
