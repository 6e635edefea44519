//! Three threads, each two of which look like a view.

use super::world::{ANY, Frame, NONE, Pos, ROOM, Sort, World};
use wattle_evidence::certificate::Corrupt;

const APART: Corrupt = Corrupt("views that agree about a thread do not agree");

/// One position with what it is in each of the three views, where it occurs there.
type Token = [Option<Pos>; 3];

/// The tokens of the scalars (`None`) or of one thread, in a fixed order.
fn tokens(f: &Frame<'_>, w: &World, of: Option<usize>, threads: bool, out: &mut Vec<Pos>) {
    let n = w.me.len();
    let mut take = |p: Pos, sort: Sort| {
        let meant = match sort {
            Sort::Finite(_) => false,
            Sort::Thread => threads,
            Sort::Number(_) => !threads,
        };
        if meant && p < NONE {
            out.push(p);
        }
    };
    let Some(t) = of else {
        w.anchors.iter().for_each(|p| take(*p, Sort::Number(true)));
        for (c, elements) in w.memory.cells() {
            if f.system.cells[c].arity == 0 {
                take(elements[0], f.sorts[c]);
            }
        }
        return;
    };
    take(w.me[t], Sort::Thread);
    for (c, elements) in w.memory.cells() {
        match f.system.cells[c].arity {
            0 => {}
            1 => take(elements[t], f.sorts[c]),
            _ => take(elements[t * n + t], f.sorts[c]),
        }
    }
    for s in w.pending[t].iter().flat_map(|p| &p.stores) {
        s.of.iter().for_each(|p| take(*p, Sort::Thread));
        take(s.value, f.sort(s.cell));
    }
}

/// Puts positions back where [`tokens`] took them.
fn assign(
    f: &Frame<'_>,
    w: &mut World,
    of: Option<usize>,
    threads: bool,
    from: &mut dyn Iterator<Item = Pos>,
) {
    let n = w.me.len();
    let mut give = |p: &mut Pos, sort: Sort| {
        let meant = match sort {
            Sort::Finite(_) => false,
            Sort::Thread => threads,
            Sort::Number(_) => !threads,
        };
        if meant && *p < NONE {
            *p = from.next().unwrap_or(*p);
        }
    };
    let Some(t) = of else {
        w.anchors
            .iter_mut()
            .for_each(|p| give(p, Sort::Number(true)));
        for (c, cell) in f.system.cells.iter().enumerate() {
            if cell.arity == 0 {
                give(&mut w.memory[c][0], f.sorts[c]);
            }
        }
        return;
    };
    give(&mut w.me[t], Sort::Thread);
    for (c, cell) in f.system.cells.iter().enumerate() {
        match cell.arity {
            0 => {}
            1 => give(&mut w.memory[c][t], f.sorts[c]),
            _ => give(&mut w.memory[c][t * n + t], f.sorts[c]),
        }
    }
    for s in w.pending[t].iter_mut().flat_map(|p| &mut p.stores) {
        s.of.iter_mut().for_each(|p| give(p, Sort::Thread));
        give(&mut s.value, f.sort(s.cell));
    }
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

/// The three threads x, y, z together: from the views of x and y, of x and z, of y and z; each view with
/// the places of the two in it.
pub fn join(f: &Frame<'_>, views: [(&World, [usize; 2]); 3]) -> Result<Option<World>, Corrupt> {
    let [(xy, [x0, y0]), (xz, [x1, z1]), (yz, [y2, z2])] = views;
    let parts: [[Option<Option<usize>>; 3]; 4] = [
        [Some(None); 3],
        [Some(Some(x0)), Some(Some(x1)), None],
        [Some(Some(y0)), None, Some(Some(y2))],
        [None, Some(Some(z1)), Some(Some(z2))],
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
    for threads in [true, false] {
        let mut all: Vec<Token> = Vec::new();
        for part in parts {
            let start = all.len();
            let mut length = None;
            for (v, of) in part.iter().enumerate() {
                let Some(of) = of else { continue };
                let mut found = Vec::new();
                tokens(f, views[v].0, *of, threads, &mut found);
                if *length.get_or_insert(found.len()) != found.len() {
                    return Err(APART);
                }
                all.resize(start + found.len(), [None; 3]);
                for (k, p) in found.into_iter().enumerate() {
                    all[start + k][v] = Some(p);
                }
            }
        }
        let Some(settled) = settle(&all, f.ordered || !threads)? else {
            return Ok(None);
        };
        if threads {
            for (v, (view, _)) in views.iter().enumerate() {
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
        for of in [None, Some(0), Some(1), Some(2)] {
            assign(f, &mut w, of, threads, &mut from);
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
