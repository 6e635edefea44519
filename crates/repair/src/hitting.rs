//! Cheapest sets that hit every clause: branch and bound over the smallest clause not yet hit.

use crate::site::{Site, SiteKind};
use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress, Stop};

/// What each kind of repair costs; a kind without a cost is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    pub fence: Option<u32>,
    pub store_fence: Option<u32>,
    pub swap: Option<u32>,
    /// A read-modify-write made atomic. It changes what the program does under SC too.
    pub lock: Option<u32>,
    /// Every loop around it, on top of what it is. Without a cost loops only decide between repairs
    /// that cost the same.
    pub around: Option<u32>,
}

impl Default for Costs {
    /// As few as possible; of two that do, the weaker.
    fn default() -> Self {
        Costs {
            fence: Some(100),
            store_fence: Some(99),
            swap: None,
            lock: None,
            around: None,
        }
    }
}

impl Costs {
    /// As few as possible, and read-modify-writes may be locked; a fence that does is preferred.
    pub fn with_locks() -> Self {
        Costs {
            lock: Some(101),
            ..Costs::default()
        }
    }

    pub fn of(&self, site: Site) -> Option<u32> {
        match site.kind {
            SiteKind::Fence(_) => self.fence,
            SiteKind::StoreFence(_) => self.store_fence,
            SiteKind::Swap(_) => self.swap,
            SiteKind::Lock(_) => self.lock,
        }
    }
}

/// What a site costs; nothing if it must not be used.
pub type Price<'p> = dyn Fn(Site) -> Option<u64> + 'p;

/// A cheapest set that has an element of every clause and contains none of the `known` sets; none if
/// there is no such set. Of equally cheap ones the first in order of sites.
pub fn cheapest(
    clauses: &[BTreeSet<Site>],
    known: &[BTreeSet<Site>],
    price: &Price<'_>,
    control: &Control<'_>,
) -> Result<Option<BTreeSet<Site>>, Stop> {
    let clauses = clauses.iter().map(|c| {
        let usable = c.iter().filter(|s| price(**s).is_some());
        usable.copied().collect::<BTreeSet<Site>>()
    });
    let mut search = Search {
        clauses: clauses.collect(),
        known,
        price,
        control,
        best: None,
        nodes: 0,
    };
    let mut banned = BTreeSet::new();
    search.branch(&mut BTreeSet::new(), &mut banned, 0)?;
    Ok(search.best.map(|(_, set)| set))
}

struct Search<'s, 'c> {
    clauses: Vec<BTreeSet<Site>>,
    known: &'s [BTreeSet<Site>],
    price: &'s Price<'s>,
    control: &'s Control<'c>,
    best: Option<(u64, BTreeSet<Site>)>,
    nodes: u64,
}

impl Search<'_, '_> {
    /// Depth is at most the number of clauses.
    fn branch(
        &mut self,
        chosen: &mut BTreeSet<Site>,
        banned: &mut BTreeSet<Site>,
        cost: u64,
    ) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(4096) {
            self.control.poll("repair", Progress::default())?;
        }
        if self.known.iter().any(|k| k.is_subset(chosen)) {
            return Ok(());
        }
        if let Some((best, _)) = &self.best
            && cost + self.at_least(chosen, banned) >= *best
        {
            return Ok(());
        }
        let open = self.clauses.iter().filter(|c| c.is_disjoint(chosen));
        let usable = |c: &BTreeSet<Site>| c.difference(banned).count();
        let Some(clause) = open.min_by_key(|c| usable(c)) else {
            self.best = Some((cost, chosen.clone()));
            return Ok(());
        };
        // Each branch takes one site and gives up those tried before it, so no set comes twice.
        let sites: Vec<Site> = clause.difference(banned).copied().collect();
        for (i, site) in sites.iter().enumerate() {
            let price = (self.price)(*site).unwrap_or(0);
            chosen.insert(*site);
            self.branch(chosen, banned, cost + price)?;
            chosen.remove(site);
            banned.insert(*site);
            if i + 1 == sites.len() {
                break;
            }
        }
        for site in &sites {
            banned.remove(site);
        }
        Ok(())
    }

    /// Clauses that share no site must each be paid for.
    fn at_least(&self, chosen: &BTreeSet<Site>, banned: &BTreeSet<Site>) -> u64 {
        let mut used: BTreeSet<Site> = BTreeSet::new();
        let mut sum = 0;
        for c in self.clauses.iter().filter(|c| c.is_disjoint(chosen)) {
            let mut free = c.difference(banned).peekable();
            if free.peek().is_none() {
                return u64::MAX / 2;
            }
            if c.is_disjoint(&used) {
                let prices = free.filter_map(|s| (self.price)(*s));
                sum += prices.min().unwrap_or(0);
                used.extend(c);
            }
        }
        sum
    }
}
