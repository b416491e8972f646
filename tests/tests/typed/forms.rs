//! Compares the forms of a collective call.

/// Makes a call in all four forms, with other numbers in each of three steps, and compares what they leave in the buffer
/// of the results. `$given` and `$room` are the lengths of the buffers that the description names `$data` and `$into`.
/// `$scope` is a method of a scope and its argument, by which it makes calls on `$on`.
macro_rules! forms {
    (
        $world:ident, $on:ident by $scope:ident, $given:expr, $room:expr,
        |$data:ident, $into:ident| $call:expr
    ) => {{
        let numbers = |step: usize, len: usize| -> Vec<usize> {
            (0..len).map(|index| 1000 * step + 100 * $world.rank() + index).collect()
        };
        let (given, room): (usize, usize) = ($given, $room);
        let ($data, $into) = (vec![0; given], vec![0; room]);
        let mut kept = $on.persistent($call).unwrap();
        for step in 1..4 {
            let (given, found) = (numbers(step, given), numbers(step + 50, room));
            let mut expected = found.clone();
            let ($data, $into) = (&given, &mut expected);
            $on.run($call).unwrap();

            // A call with one buffer has none that it only sends.
            let mine = kept.data_mut().unwrap();
            mine.copy_from_slice(&given[..mine.len()]);
            kept.buffer_mut().unwrap().copy_from_slice(&found);
            kept.start().unwrap();
            let ($data, $into) = (given.clone(), found.clone());
            let owning = $on.start($call).unwrap();
            let mut lent = found;
            let scoped = $world.scope(|scope| {
                let ($data, $into) = (&given, &mut lent);
                scope.$scope($on).start($call).map(drop)
            });
            scoped.unwrap();
            let what = (stringify!($call), step);
            assert_eq!(owning.wait().unwrap().0, expected, "{what:?}, owning");
            assert_eq!(kept.start().unwrap_err().class(), ErrorClass::Request, "{what:?}");
            kept.wait().unwrap();
            assert_eq!(kept.buffer().unwrap(), expected, "{what:?}, kept");
            assert_eq!(lent, expected, "{what:?}, scoped");
        }
    }};
}
pub(crate) use forms;
