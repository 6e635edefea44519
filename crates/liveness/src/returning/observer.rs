//! Observers: what an automaton may have come to, by all its edges at once.

use rustc_hash::FxHashMap;
use wattle_evidence::certificate::components::Automaton;

/// An observer: sorted pairs of a state of the automaton and the acceptance sets met since the last return.
pub type Pairs = Vec<(u32, u64)>;

/// Larger observers are not looked at.
const MOST_PAIRS: usize = 1 << 10;

/// An automaton and the observers it was read with so far.
pub struct Watch {
    pub automaton: Automaton,
    pub observers: Vec<Pairs>,
    index: FxHashMap<Pairs, u32>,
    after: FxHashMap<(u32, u64), u32>,
    kept: Vec<Option<u32>>,
    all: u64,
}

impl Watch {
    pub fn new(automaton: Automaton) -> Self {
        let sets = automaton.untils.len();
        Watch {
            automaton,
            observers: Vec::new(),
            index: FxHashMap::default(),
            after: FxHashMap::default(),
            kept: Vec::new(),
            // There are at most 64.
            all: (0..sets).fold(0, |all, k| all | 1 << k),
        }
    }

    pub fn number(&mut self, pairs: Pairs) -> u32 {
        if let Some(i) = self.index.get(&pairs) {
            return *i;
        }
        let i = self.observers.len() as u32;
        let mut full = pairs.iter().filter(|(_, met)| *met == self.all);
        let kept: Pairs = full.by_ref().map(|(q, _)| (*q, 0)).collect();
        self.index.insert(pairs.clone(), i);
        self.observers.push(pairs);
        self.kept.push(None);
        if !kept.is_empty() {
            let kept = self.number(kept);
            self.kept[i as usize] = Some(kept);
        }
        i
    }

    /// Begins with these states of the automaton.
    pub fn begin(&mut self, states: impl IntoIterator<Item = u32>) -> u32 {
        let mut pairs: Pairs = states.into_iter().map(|q| (q, 0)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        self.number(pairs)
    }

    /// After a state in which these conditions are true; none if the observer is too large.
    pub fn read(&mut self, observer: u32, truth: u64) -> Option<u32> {
        if let Some(after) = self.after.get(&(observer, truth)) {
            return Some(*after);
        }
        let mut pairs = Pairs::new();
        for (q, met) in &self.observers[observer as usize] {
            for edge in &self.automaton.states[*q as usize].edges {
                let mut now = edge.now.iter();
                if now.all(|(atom, positive)| (truth >> atom & 1 == 1) == *positive) {
                    let met = edge.accepting.iter().fold(*met, |met, k| met | 1 << k);
                    pairs.push((edge.target, met));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        // Who has met more need not be told from who has met less.
        let less =
            |(q, met): (u32, u64), (p, more): (u32, u64)| p == q && met != more && met & !more == 0;
        let all = pairs.clone();
        pairs.retain(|pair| !all.iter().any(|other| less(*pair, *other)));
        if pairs.len() > MOST_PAIRS {
            return None;
        }
        let after = self.number(pairs);
        self.after.insert((observer, truth), after);
        Some(after)
    }

    /// What a return would keep.
    pub fn kept(&self, observer: u32) -> Option<u32> {
        self.kept[observer as usize]
    }

    /// The states of the automaton, without what they have met.
    pub fn states(&self, observer: u32) -> Vec<u32> {
        let mut states: Vec<u32> = (self.observers[observer as usize].iter())
            .map(|(q, _)| *q)
            .collect();
        states.dedup();
        states
    }
}
