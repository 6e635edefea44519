//! Smaller inputs that fail in the same way: pieces are cut out, large ones first.

/// Cuts as long as the input still `fails`, asking at most `tries` times.
pub fn shrink(text: &str, tries: usize, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut best: Vec<char> = text.chars().collect();
    let mut left = tries;
    let mut piece = best.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut cut = false;
        while at < best.len() && left > 0 {
            let end = (at + piece).min(best.len());
            let shorter: String = best[..at].iter().chain(&best[end..]).collect();
            left -= 1;
            if fails(&shorter) {
                best = shorter.chars().collect();
                cut = true;
            } else {
                at = end;
            }
        }
        if left == 0 || (piece == 1 && !cut) {
            return best.into_iter().collect();
        }
        if !cut {
            piece = (piece / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shrink;

    #[test]
    fn keeps_what_matters() {
        let text = "aaaaaaaaXbbbbbbbbbbbYcccccc";
        let small = shrink(text, 10_000, |t| t.contains('X') && t.contains('Y'));
        assert_eq!(small, "XY");
    }

    #[test]
    fn stops_after_the_tries() {
        assert_eq!(shrink("abc", 0, |_| true), "abc");
    }
}
