//! `cargo run -p wattle-machine --example lift -- lock.wtl`: what is made of a program and its code.

use std::path::Path;
use wattle_machine::{Image, fill};
use wattle_syntax::wtl;

fn main() {
    for name in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&name).unwrap_or_default();
        let linked = wtl::parse_linked(&text);
        let Some(program) = linked.parsed.program else {
            eprintln!("{}", linked.parsed.render(&name, &text));
            continue;
        };
        let names: Vec<&str> = linked
            .link
            .calls
            .iter()
            .map(|c| c.function.as_str())
            .collect();
        let Some((file, _)) = linked.link.objects.first() else {
            continue;
        };
        let path = Path::new(&name)
            .parent()
            .unwrap_or(Path::new(""))
            .join(file);
        let bytes = std::fs::read(path).unwrap_or_default();
        let image = match Image::read(&bytes, &names) {
            Ok(image) => image,
            Err(p) => {
                eprintln!("{p}");
                continue;
            }
        };
        match fill(program, &linked.link, image, &text) {
            Ok(filled) => {
                let program = wattle_model::print::to_wtl(&filled.program);
                println!("{program}\n/*\n{}*/", filled.listing.text);
            }
            Err(why) => why
                .diagnostics
                .iter()
                .for_each(|d| eprintln!("{}", d.render(&name, &text))),
        }
    }
}
