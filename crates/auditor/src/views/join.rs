//! Three threads, each two of which look like a view.

use super::world::{ANY, Frame, Pos, ROOM, Sort, World};
use wattle_evidence::certificate::Corrupt;

const APART: Corrupt = Corrupt("views that agree about a thread do not agree");

/// One position with what it is in each of the three views, where it occurs there.
type Token = [Option<Pos>; 3];

/// The positions of threads, and of numbers: of the scalars, and of each thread, in a fixed order.
pub type Tokens = [Vec<Vec<Pos>>; 2];

pub fn tokens(f: &Frame<'_>, w: &World) -> Tokens {
    let mut w = w.clone();
    [true, false].map(|threads| {
        let parts = std::iter::once(None).chain((0..w.me.len()).map(Some));
        let tokens = parts.map(|of| {
            let mut found = Vec::new();
            f.each_of(&mut w, of, threads, &mut |p| found.push(*p));
            found
        });
        tokens.collect()
    })
}

fn shared(a: &Token, b: &Token) -> Option<(Pos, Pos)> {
    (0..3).find_map(|v| a[v].zip(b[v]))
}

/// Classes of equal tokens in order, if all views agree; any two tokens meet in some view.
fn settle(all: &[Token], ordered: bool) -> Result<Option<Vec<Pos>>, Corrupt> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (i, t) in all.iter().enumerate() {
        let mut place = classes.len();
        let mut same = None;
        for (k, class) in classes.iter().enumerate() {
            let (mine, its) = shared(t, &all[class[0]]).ok_or(APART)?;
            if mine == its {
                same = Some(k);
                break;
            }
            if ordered && mine < its {
                place = k;
                break;
            }
        }
        match same {
            Some(k) => classes[k].push(i),
            None => classes.insert(place, vec![i]),
        }
    }
    let mut out = vec![0; all.len()];
    for (k, class) in classes.iter().enumerate() {
        class.iter().for_each(|i| out[*i] = (k as Pos + 1) * ROOM);
    }
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all[..i].iter().enumerate() {
            for v in 0..3 {
                if let Some((x, y)) = a[v].zip(b[v]) {
                    let agree = match ordered {
                        true => x.cmp(&y) == out[i].cmp(&out[j]),
                        false => (x == y) == (out[i] == out[j]),
                    };
                    if !agree {
                        return Ok(None);
                    }
                }
            }
        }
    }
    Ok(Some(out))
}

/// A view with its tokens and the places of two threads in it.
pub type Placed<'v> = (&'v World, &'v Tokens, [usize; 2]);

/// The three threads x, y, z together: from the views of x and y, of x and z, of y and z; each view with
/// the places of the two in it.
pub fn join(f: &Frame<'_>, views: [Placed<'_>; 3]) -> Result<Option<World>, Corrupt> {
    let [(xy, _, [x0, y0]), (xz, _, [x1, z1]), (yz, _, [y2, z2])] = views;
    let parts: [[Option<usize>; 3]; 4] = [
        [Some(0); 3],
        [Some(1 + x0), Some(1 + x1), None],
        [Some(1 + y0), None, Some(1 + y2)],
        [None, Some(1 + z1), Some(1 + z2)],
    ];
    let mut w = f.blank(3);
    w.pending = vec![
        xy.pending[x0].clone(),
        xy.pending[y0].clone(),
        xz.pending[z1].clone(),
    ];
    for (c, cell) in f.system.cells.iter().enumerate() {
        let (a, b, d) = (&xy.memory[c], &xz.memory[c], &yz.memory[c]);
        let all = &mut w.memory[c];
        match cell.arity {
            0 => all[0] = a[0],
            1 => all.copy_from_slice(&[a[x0], a[y0], b[z1]]),
            _ => {
                // Positions that only one of the views knows are left open.
                let open = |p: Pos| match f.sorts[c] {
                    Sort::Finite(_) => p,
                    Sort::Thread | Sort::Number(_) => ANY,
                };
                all.copy_from_slice(&[
                    a[x0 * 2 + x0],
                    open(a[x0 * 2 + y0]),
                    open(b[x1 * 2 + z1]),
                    open(a[y0 * 2 + x0]),
                    a[y0 * 2 + y0],
                    open(d[y2 * 2 + z2]),
                    open(b[z1 * 2 + x1]),
                    open(d[z2 * 2 + y2]),
                    b[z1 * 2 + z1],
                ]);
            }
        }
    }
    let mut named: Vec<(u16, Pos, Pos)> = Vec::new();
    for (kind, threads) in [true, false].into_iter().enumerate() {
        let mut all: Vec<Token> = Vec::new();
        for part in parts {
            let start = all.len();
            let mut length = None;
            for (v, of) in part.iter().enumerate() {
                let Some(of) = of else { continue };
                let found = &views[v].1[kind][*of];
                if *length.get_or_insert(found.len()) != found.len() {
                    return Err(APART);
                }
                all.resize(start + found.len(), [None; 3]);
                for (k, p) in found.iter().enumerate() {
                    all[start + k][v] = Some(*p);
                }
            }
        }
        let Some(settled) = settle(&all, f.ordered || !threads)? else {
            return Ok(None);
        };
        if threads {
            for (v, (view, ..)) in views.iter().enumerate() {
                for (cell, of, value) in &view.looked {
                    let same = |t: &Token| t[v].is_some_and(|p| of[..] == [p]);
                    // Somebody who is not named is nobody in particular.
                    if let Some(i) = all.iter().position(same) {
                        named.push((*cell, settled[i], *value));
                    }
                }
            }
        }
        let mut from = settled.into_iter();
        // Where [`tokens`] took them.
        for of in [None, Some(0), Some(1), Some(2)] {
            f.each_of(&mut w, of, threads, &mut |p| *p = from.next().unwrap_or(*p));
        }
    }
    for (cell, of, value) in named {
        let whole = w.me.iter().position(|p| *p == of);
        let other = w.looked.iter().find(|l| l.0 == cell && l.1 == [of]);
        match whole
            .map(|t| w.memory[usize::from(cell)][t])
            .or(other.map(|l| l.2))
        {
            Some(v) if v != value && v != ANY && value != ANY => return Ok(None),
            Some(_) => {}
            None => w.looked.push((cell, vec![of], value)),
        }
    }
    Ok(Some(w))
}
