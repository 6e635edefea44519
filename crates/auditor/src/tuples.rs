//! Lists of threads.

/// All lists of so many of these, or of different ones.
pub fn tuples<T: Clone + PartialEq>(all: &[T], length: usize, different: bool) -> Vec<Vec<T>> {
    let mut out: Vec<Vec<T>> = vec![Vec::new()];
    for _ in 0..length {
        let longer = out.iter().flat_map(|some| {
            let free = all.iter().filter(move |t| !different || !some.contains(t));
            free.map(move |t| [&some[..], std::slice::from_ref(t)].concat())
        });
        out = longer.collect();
    }
    out
}
