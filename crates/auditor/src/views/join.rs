//! Three threads, each two of which look like a view.

use super::world::{ANY, Frame, Of, Pos, ROOM, Sort, World};
use wattle_evidence::certificate::Corrupt;

const APART: Corrupt = Corrupt("views that agree about a thread do not agree");

/// One position with what it is in each of the three views, where it occurs there.
type Token = [Option<Pos>; 3];

/// The positions of threads, and of numbers: of the scalars, and of each thread, in a fixed order.
pub type Tokens = [[Vec<Pos>; 4]; 2];

/// Where among tokens a position is.
fn place(of: Of, sort: Sort) -> Option<(usize, usize)> {
    let kind = usize::from(sort != Sort::Thread);
    match of {
        Of::All => Some((kind, 0)),
        Of::One(t) => Some((kind, 1 + t)),
        Of::Two | Of::Other => None,
    }
}

pub fn tokens(f: &Frame<'_>, w: &World) -> Tokens {
    let mut tokens = Tokens::default();
    f.each(&mut w.clone(), &mut |of, sort, p| {
        if let Some((kind, part)) = place(of, sort) {
            tokens[kind][part].push(*p);
        }
    });
    tokens
}

fn shared(a: &Token, b: &Token) -> Option<(Pos, Pos)> {
    (0..3).find_map(|v| a[v].zip(b[v]))
}

/// Equal tokens in one place, and places in order, if all views agree; any two tokens meet in some view.
fn settle(all: &[Token], ordered: bool) -> Result<Option<Vec<Pos>>, Corrupt> {
    let mut out: Vec<Pos> = Vec::new();
    for (i, a) in all.iter().enumerate() {
        // If they agree, those below are as many for equal ones and more for greater ones.
        let (mut below, mut same) = (0, i);
        for (j, b) in all.iter().enumerate() {
            let (mine, its) = shared(a, b).ok_or(APART)?;
            below += usize::from(its < mine);
            same = same.min(if its == mine { j } else { i });
        }
        out.push((if ordered { below } else { same } as Pos + 1) * ROOM);
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
    let [(xy, _, [x0, y0]), (_, _, [x1, z1]), (_, _, [y2, z2])] = views;
    let parts: [[Option<usize>; 3]; 4] = [
        [Some(0); 3],
        [Some(1 + x0), Some(1 + x1), None],
        [Some(1 + y0), None, Some(1 + y2)],
        [None, Some(1 + z1), Some(1 + z2)],
    ];
    // A view that has both threads, and where.
    let both = |i: usize, j: usize| {
        let at = |v: usize| Some((views[v].0, parts[1 + i][v]? - 1, parts[1 + j][v]? - 1));
        (0..3).find_map(at).unwrap_or((xy, x0, y0))
    };
    let mut w = f.blank(3);
    for t in 0..3 {
        let (view, at, _) = both(t, t);
        w.pending[t].clone_from(&view.pending[at]);
    }
    for (c, all) in w.memory.iter_mut().enumerate() {
        for (i, p) in all[..f.elements(c, 3)].iter_mut().enumerate() {
            let (view, s, t) = both(i / 3, i % 3);
            *p = match f.system.cells[c].arity {
                0 => view.memory[c][0],
                1 => both(i, i).0.memory[c][both(i, i).1],
                // Positions that only one of the views knows are left open.
                _ if i / 3 != i % 3 && !matches!(f.sorts[c], Sort::Finite(_)) => ANY,
                _ => view.memory[c][s * 2 + t],
            };
        }
    }
    // A token for each position, in the order in which [`tokens`] took them; first its number stands there.
    let mut tokens: [Vec<Token>; 2] = Default::default();
    let mut left =
        views.map(|(_, tokens, _)| tokens.each_ref().map(|k| k.each_ref().map(|p| p.iter())));
    let mut apart = false;
    f.each(&mut w, &mut |of, sort, p| {
        let Some((kind, part)) = place(of, sort) else {
            return;
        };
        let token = [0, 1, 2].map(|v| left[v][kind][parts[part][v]?].next().copied());
        apart |= (0..3).any(|v| token[v].is_some() != parts[part][v].is_some());
        *p = tokens[kind].len() as Pos;
        tokens[kind].push(token);
    });
    if apart || left.iter().flatten().flatten().any(|rest| rest.len() > 0) {
        return Err(APART);
    }
    let (threads, numbers) = (settle(&tokens[0], f.ordered)?, settle(&tokens[1], true)?);
    let Some(settled) = threads.zip(numbers) else {
        return Ok(None);
    };
    f.each(&mut w, &mut |of, sort, p| match place(of, sort) {
        Some((0, _)) => *p = settled.0[*p as usize],
        Some(_) => *p = settled.1[*p as usize],
        None => {}
    });
    for (v, (view, ..)) in views.iter().enumerate() {
        for (cell, of, value) in &view.looked {
            let same = |t: &Token| t[v].is_some_and(|p| of[..] == [p]);
            // Somebody who is not named is nobody in particular.
            let Some(i) = tokens[0].iter().position(same) else {
                continue;
            };
            let of = settled.0[i];
            let whole = w.me.iter().position(|p| *p == of);
            let other = w.looked.iter().find(|l| l.0 == *cell && l.1 == [of]);
            match whole
                .map(|t| w.memory[usize::from(*cell)][t])
                .or(other.map(|l| l.2))
            {
                Some(v) if v != *value && v != ANY && *value != ANY => return Ok(None),
                Some(_) => {}
                None => w.looked.push((*cell, vec![of], *value)),
            }
        }
    }
    Ok(Some(w))
}
