//! Lanes for vertical lines beside the boxes: lines that overlap in height get different ones.

/// The lane of every line, given the rows it spans; shorter lines get nearer lanes. The second value
/// is the number of lanes.
pub fn assign(spans: &[(usize, usize)]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|i| (spans[*i].1 - spans[*i].0, spans[*i].0, *i));
    let mut lanes: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut of = vec![0; spans.len()];
    for i in order {
        let (low, high) = spans[i];
        let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(a, b)| *b < low || high < *a);
        let lane = lanes.iter().position(free).unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push((low, high));
        of[i] = lane;
    }
    (of, lanes.len())
}

#[cfg(test)]
mod tests {
    use super::assign;

    #[test]
    fn lines_that_overlap_get_different_lanes() {
        let spans = [(0, 9), (1, 2), (3, 4), (2, 5), (4, 4)];
        let (of, count) = assign(&spans);
        for (i, a) in spans.iter().enumerate() {
            for (j, b) in spans.iter().enumerate().skip(i + 1) {
                let apart = a.1 < b.0 || b.1 < a.0;
                assert!(apart || of[i] != of[j], "{a:?} and {b:?} share a lane");
            }
        }
        assert_eq!(count, 4);
    }
}
