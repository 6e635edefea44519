//! Files that are not what they say: cut off, changed here and there, with sizes and offsets of their own
//! invention. Whatever they are, reading them ends with a program or with a reason.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use wattle_machine::{Image, fill};
use wattle_syntax::wtl;

/// `gcc -O2 -g -c examples/machine-code/locks.c`
const LOCKS: &[u8] = include_bytes!("data/locks.o");

const HARNESS: &str = "
    object \"locks.o\";
    shared l: object(8), m: object(8), n[t]: object(16), f: object(4), a: object(20);
    thread t[*] {
        local r: u32;
        call ticket_lock(&l);
        call mcs_lock(&m, &n[self]);
        call read_lock(&f);
        r = call array_lock(&a);
        critical: skip;
        call array_unlock(&a, r);
        call mcs_unlock(&m, &n[self]);
        call ticket_unlock(&l);
    }
    never t[i]@critical && t[j]@critical;";

fn read(bytes: &[u8]) -> Result<usize, String> {
    let linked = wtl::parse_linked(HARNESS);
    let program = linked.parsed.program.expect("the harness is a program");
    let names: Vec<&str> = linked
        .link
        .calls
        .iter()
        .map(|c| c.function.as_str())
        .collect();
    let image = Image::read(bytes, &names).map_err(|p| p.to_string())?;
    match fill(program, &linked.link, image, HARNESS) {
        Ok(filled) => Ok(filled.program.families[0].steps.len()),
        Err(why) => Err(why.diagnostics[0].message.clone()),
    }
}

#[test]
fn the_file_itself_is_a_program() {
    let steps = read(LOCKS).expect("a program");
    assert!((20..80).contains(&steps), "{steps}");
}

#[test]
fn truncated() {
    for end in (0..LOCKS.len()).step_by(97) {
        let _ = read(&LOCKS[..end]);
    }
}

#[test]
fn changed_here_and_there() {
    let mut rng = SmallRng::seed_from_u64(3);
    let (mut programs, mut reasons) = (0, 0);
    for _ in 0..200 {
        let mut bytes = LOCKS.to_vec();
        for _ in 0..rng.random_range(1..6) {
            // Headers and tables are at both ends; most of the middle is debug information.
            let at = match rng.random_range(0..4) {
                0 => rng.random_range(0..64),
                1 => bytes.len() - 1 - rng.random_range(0..2500),
                _ => rng.random_range(0..bytes.len()),
            };
            bytes[at] = match rng.random_range(0..4) {
                0 => 0,
                1 => 0xff,
                2 => bytes[at].wrapping_add(1),
                _ => rng.random(),
            };
        }
        match read(&bytes) {
            Ok(_) => programs += 1,
            Err(_) => reasons += 1,
        }
    }
    println!("{programs} programs, {reasons} refused");
    assert!(programs > 0 && reasons > 0);
}
