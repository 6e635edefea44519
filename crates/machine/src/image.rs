//! A file of compiled code, laid out in one address space.
//!
//! Relocatable objects are linked against nothing: every section gets addresses of its own, names that
//! are defined elsewhere get one each in a range where nothing is, and so do the entries of the global
//! offset table. After that an object and an executable look the same: bytes at addresses, names for
//! addresses. Which operands are addresses is remembered, because the number alone does not tell.

use crate::Problem;
use crate::thread::Thread;
use object::read::archive::ArchiveFile;
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionKind, SymbolKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// Larger files, and files that claim more memory, are refused.
pub const MAX_BYTES: u64 = 256 << 20;

/// Where sections of relocatable objects begin; below nothing is mapped, above is within 31 bits.
const FIRST: u64 = 0x1000_0000;

#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
    /// Bytes past `bytes` are zero.
    pub size: u64,
    pub code: bool,
    pub writable: bool,
    /// Each thread has one of its own.
    pub thread: bool,
}

/// A name in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub code: bool,
    pub global: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Image {
    pub sections: Vec<Section>,
    /// Sorted by address.
    pub symbols: Vec<Symbol>,
    /// Names that are defined elsewhere, by the address they were given.
    pub externs: BTreeMap<u64, String>,
    /// What the entries of the global offset table hold.
    pub got: BTreeMap<u64, u64>,
    /// Where in the code an operand is an address, by its first byte.
    pub addresses: BTreeSet<u64>,
    /// Variables of which each thread has its own.
    pub thread: Thread,
    /// What entries of the global offset table hold that are distances from the thread pointer.
    pub distances: BTreeMap<u64, u64>,
    /// Words of data that are addresses.
    pub pointers: BTreeMap<u64, u64>,
    /// Whether operands that are addresses are known (objects) or to be guessed (executables).
    pub relocatable: bool,
    /// Texts of the section `.wattle`: what is to be checked.
    pub notes: Vec<String>,
    /// Debug sections by name.
    pub debug: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// Reads an object, an executable, or the members of an archive that define one of the names.
    pub fn read(bytes: &[u8], wanted: &[&str]) -> Result<Image, Problem> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Problem::new(format!("larger than {} MB", MAX_BYTES >> 20)));
        }
        if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
            return archive(bytes, wanted);
        }
        member(bytes)
    }

    pub fn section_at(&self, address: u64) -> Option<&Section> {
        let next = self.sections.partition_point(|s| s.address <= address);
        let s = self.sections.get(next.checked_sub(1)?)?;
        (address - s.address < s.size).then_some(s)
    }

    /// The bytes from an address to the end of its section's data.
    pub fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let s = self.section_at(address)?;
        s.bytes.get(usize::try_from(address - s.address).ok()?..)
    }

    /// The byte at an address that is mapped; data without bytes is zero.
    pub fn byte(&self, address: u64) -> Option<u8> {
        let s = self.section_at(address)?;
        let at = usize::try_from(address - s.address).ok()?;
        Some(s.bytes.get(at).copied().unwrap_or(0))
    }

    /// The symbol an address belongs to.
    pub fn symbol_at(&self, address: u64) -> Option<&Symbol> {
        let next = self.symbols.partition_point(|s| s.address <= address);
        let before = self.symbols[..next].iter().rev().take(64);
        let holds = |s: &&Symbol| address - s.address < s.size.max(1);
        before
            .filter(holds)
            .max_by_key(|s| (s.address, s.global, s.size))
    }

    /// A function by its name: as it is, demangled, or by the end of its path. Several are an error.
    pub fn function(&self, name: &str) -> Result<&Symbol, Problem> {
        let code = || self.symbols.iter().filter(|s| s.code);
        if let Some(exact) = code().find(|s| s.name == name) {
            return Ok(exact);
        }
        let fits = |s: &&Symbol| {
            let shown = plain_name(&s.name);
            shown == name
                || shown
                    .strip_suffix(name)
                    .is_some_and(|rest| rest.ends_with("::"))
        };
        let found: Vec<&Symbol> = code().filter(fits).collect();
        let places: BTreeSet<u64> = found.iter().map(|s| s.address).collect();
        match (found.first(), places.len()) {
            (Some(one), 1) => Ok(one),
            (Some(_), _) => {
                let names: Vec<String> = found.iter().map(|s| plain_name(&s.name)).collect();
                let text = format!(
                    "several functions are called `{name}`: {}",
                    names.join(", ")
                );
                Err(Problem::new(text)
                    .hint("say more of its path, or its name as the linker sees it"))
            }
            (None, _) if self.externs.values().any(|n| n == name) => {
                let text = format!("`{name}` is used but not defined here");
                Err(Problem::new(text)
                    .hint("compile the file that defines it into the same object (`ld -r`)"))
            }
            (None, _) => {
                let mut known: Vec<String> = code().map(|s| plain_name(&s.name)).collect();
                known.sort();
                known.dedup();
                let problem = Problem::new(format!("there is no function `{name}`"));
                let near = wattle_syntax::diagnostics::did_you_mean(
                    name,
                    known.iter().map(String::as_str),
                );
                Err(match near {
                    Some(hint) => problem.hint(hint),
                    None if known.is_empty() => {
                        problem.hint("the file has no symbols for functions; was it stripped?")
                    }
                    None => {
                        let some = known
                            .iter()
                            .take(12)
                            .map(String::as_str)
                            .collect::<Vec<_>>();
                        problem.hint(format!("there are: {}", some.join(", ")))
                    }
                })
            }
        }
    }
}

/// The name as its author wrote it: Rust paths without their hash.
pub fn plain_name(symbol: &str) -> String {
    match rustc_demangle::try_demangle(symbol) {
        Ok(d) => format!("{d:#}"),
        Err(_) => symbol.to_string(),
    }
}

fn broken(e: object::Error) -> Problem {
    Problem::new(format!("this is no object file that can be read: {e}"))
}

fn archive(bytes: &[u8], wanted: &[&str]) -> Result<Image, Problem> {
    let archive = ArchiveFile::parse(bytes).map_err(broken)?;
    let mut candidates: Vec<(usize, Image)> = Vec::new();
    let mut names = Vec::new();
    for (number, m) in archive.members().enumerate() {
        if number > 4096 {
            return Err(Problem::new("the archive has more than 4096 members"));
        }
        let m = m.map_err(broken)?;
        let data = m.data(bytes).map_err(broken)?;
        if !data.starts_with(b"\x7fELF") {
            continue;
        }
        names.push(String::from_utf8_lossy(m.name()).into_owned());
        let image = member(data)?;
        let defined = wanted.iter().filter(|w| image.function(w).is_ok()).count();
        if defined > 0 || (wanted.is_empty() && image.is_marked()) {
            candidates.push((defined, image));
        }
    }
    let most = candidates.iter().map(|(n, _)| *n).max();
    let mut best = candidates.into_iter().filter(|(n, _)| Some(*n) == most);
    match (best.next(), best.next()) {
        (Some((_, image)), None) => Ok(image),
        (Some(_), Some(_)) => Err(Problem::new(
            "several members of the archive define these functions",
        )),
        (None, _) => {
            let text = format!("no member of the archive defines {}", wanted.join(", "));
            Err(Problem::new(text).hint(format!("its members are {}", names.join(", "))))
        }
    }
}

impl Image {
    /// Whether it has thread functions of its own.
    pub fn is_marked(&self) -> bool {
        let marked = |s: &Symbol| s.code && crate::markers::thread_name(&s.name).is_some();
        self.symbols.iter().any(marked)
    }
}

fn member(bytes: &[u8]) -> Result<Image, Problem> {
    let file = object::File::parse(bytes).map_err(broken)?;
    if file.architecture() != object::Architecture::X86_64 {
        let text = format!(
            "the code is for {:?}; only x86-64 is read",
            file.architecture()
        );
        return Err(Problem::new(text));
    }
    if file.format() != object::BinaryFormat::Elf {
        return Err(Problem::new(format!(
            "{:?} files are not read, only ELF",
            file.format()
        )));
    }
    let relocatable = file.kind() == object::ObjectKind::Relocatable;
    let mut image = Image {
        relocatable,
        ..Image::default()
    };
    let placed = sections(&file, relocatable, &mut image)?;
    let at = symbols(&file, relocatable, &placed, &mut image);
    if relocatable {
        relocate(&file, &placed, &at, &mut image)?;
    }
    debug_sections(&file, &at, &placed, &mut image)?;
    image.sections.sort_by_key(|s| s.address);
    image
        .symbols
        .sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    Ok(image)
}

/// Addresses and bytes of what is loaded.
fn sections(
    file: &object::File<'_>,
    relocatable: bool,
    image: &mut Image,
) -> Result<BTreeMap<usize, u64>, Problem> {
    let mut placed = BTreeMap::new();
    let mut next = FIRST;
    let mut total = 0u64;
    for s in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = s.flags() else {
            continue;
        };
        let allocated = sh_flags.contains(object::elf::SHF_ALLOC);
        let name = s.name().unwrap_or("").to_string();
        if name == ".wattle" {
            let data = s.data().map_err(broken)?;
            let texts = data.split(|b| *b == 0).filter(|t| !t.is_empty());
            image
                .notes
                .extend(texts.map(|t| String::from_utf8_lossy(t).into_owned()));
            continue;
        }
        if !allocated || s.size() == 0 {
            if relocatable && allocated {
                placed.insert(s.index().0, next);
                next += 16;
            }
            continue;
        }
        total = total.saturating_add(s.size());
        if total > MAX_BYTES {
            return Err(Problem::new(format!(
                "its sections claim more than {} MB",
                MAX_BYTES >> 20
            )));
        }
        let address = match relocatable {
            true => {
                let align = s.align().clamp(1, 4096).next_power_of_two();
                next.next_multiple_of(align.max(16))
            }
            false => s.address(),
        };
        let thread = sh_flags.contains(object::elf::SHF_TLS);
        if thread {
            image.thread.add(address, s.size(), s.align());
            // In an executable what is only zeros takes no room.
            if !relocatable && s.kind() == SectionKind::UninitializedTls {
                continue;
            }
        }
        next = (address.saturating_add(s.size())).saturating_add(64);
        let bytes = match s.kind() {
            SectionKind::UninitializedData | SectionKind::UninitializedTls => Vec::new(),
            _ => s.data().map_err(broken)?.to_vec(),
        };
        placed.insert(s.index().0, address);
        // What is only written while the program is loaded: tables of functions, with their addresses.
        let loaded = name == ".data.rel.ro" || name.starts_with(".data.rel.ro.");
        image.sections.push(Section {
            name,
            address,
            bytes,
            size: s.size(),
            code: sh_flags.contains(object::elf::SHF_EXECINSTR),
            writable: sh_flags.contains(object::elf::SHF_WRITE) && !thread && !loaded,
            thread,
        });
    }
    image.thread.settle(relocatable);
    image.sections.sort_by_key(|s| s.address);
    Ok(placed)
}

/// The address of every symbol, by its index; names that are defined elsewhere get one each.
fn symbols(
    file: &object::File<'_>,
    relocatable: bool,
    placed: &BTreeMap<usize, u64>,
    image: &mut Image,
) -> BTreeMap<usize, u64> {
    let mut at = BTreeMap::new();
    let end = image
        .sections
        .iter()
        .map(|s| s.address.saturating_add(s.size))
        .max();
    let mut next = end.unwrap_or(FIRST).saturating_add(4096) & !0xfff;
    for s in file.symbols() {
        let name = s.name().unwrap_or("").to_string();
        let address = match s.section_index() {
            Some(section) if relocatable => match placed.get(&section.0) {
                Some(base) => base.wrapping_add(s.address()),
                None => continue,
            },
            Some(_) => s.address(),
            None if s.is_undefined() && !name.is_empty() && relocatable => {
                next += 16;
                image.externs.insert(next, name.clone());
                next
            }
            // Memory the linker would give to `int x;` of old C.
            None if s.is_common() && relocatable => {
                next = next.next_multiple_of(64);
                let size = s.size().min(1 << 20);
                image.sections.push(Section {
                    name: ".common".to_string(),
                    address: next,
                    bytes: Vec::new(),
                    size,
                    code: false,
                    writable: true,
                    thread: false,
                });
                let here = next;
                next += size + 64;
                here
            }
            None => continue,
        };
        at.insert(s.index().0, address);
        let placed = relocatable || s.kind() != SymbolKind::Tls;
        if s.is_undefined() || name.is_empty() || s.kind() == SymbolKind::Section || !placed {
            continue;
        }
        image.symbols.push(Symbol {
            name,
            address,
            size: s.size(),
            code: s.kind() == SymbolKind::Text,
            global: s.is_global(),
        });
    }
    at
}

/// Fills in what a linker would.
fn relocate(
    file: &object::File<'_>,
    placed: &BTreeMap<usize, u64>,
    at: &BTreeMap<usize, u64>,
    image: &mut Image,
) -> Result<(), Problem> {
    use object::elf;
    let end = image.sections.iter().map(|s| s.address + s.size).max();
    let externs = image.externs.keys().next_back().copied();
    let mut next_entry = (end.max(externs).unwrap_or(FIRST) + 0x10000) & !0xfff;
    let mut entries: BTreeMap<(u64, bool), u64> = BTreeMap::new();
    for s in file.sections() {
        let Some(base) = placed.get(&s.index().0) else {
            continue;
        };
        let Some(index) = image.sections.iter().position(|i| i.address == *base) else {
            continue;
        };
        for (offset, r) in s.relocations() {
            let place = base.wrapping_add(offset);
            let RelocationTarget::Symbol(symbol) = r.target() else {
                continue;
            };
            let target = at.get(&symbol.0).copied();
            let RelocationFlags::Elf { r_type } = r.flags() else {
                continue;
            };
            // Parts that are never executed (exception tables and the like) may have what we do not
            // know; code that needs it will not decode to an address that is mapped.
            let Some(target) = target else { continue };
            let value = target.wrapping_add(r.addend() as u64);
            let of_thread = matches!(
                r_type,
                elf::R_X86_64_TPOFF32
                    | elf::R_X86_64_GOTTPOFF
                    | elf::R_X86_64_TLSGD
                    | elf::R_X86_64_DTPOFF32
            );
            if let (true, Some(name)) = (of_thread, image.externs.get(&target)) {
                image.thread.elsewhere.insert(place, name.clone());
                continue;
            }
            if of_thread {
                let addend = match r_type {
                    elf::R_X86_64_TPOFF32 | elf::R_X86_64_DTPOFF32 => r.addend() as u64,
                    _ => 0,
                };
                image
                    .thread
                    .spoken
                    .insert(place, target.wrapping_add(addend));
            }
            let mut entry = || {
                *entries.entry((target, of_thread)).or_insert_with(|| {
                    next_entry += 8;
                    next_entry
                })
            };
            let relative = |to: u64| (to.wrapping_add(r.addend() as u64)).wrapping_sub(place);
            let (value, width) = match r_type {
                elf::R_X86_64_64 => (value, 8),
                elf::R_X86_64_32 | elf::R_X86_64_32S => (value, 4),
                elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => (value.wrapping_sub(place), 4),
                elf::R_X86_64_PC64 => (value.wrapping_sub(place), 8),
                elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                    let slot = entry();
                    image.got.insert(slot, target);
                    (relative(slot), 4)
                }
                elf::R_X86_64_GOTTPOFF => {
                    let slot = entry();
                    image.distances.insert(slot, image.thread.distance(target));
                    (relative(slot), 4)
                }
                // What is asked for the address is asked with the address.
                elf::R_X86_64_TLSGD => (relative(target), 4),
                elf::R_X86_64_TLSLD => (relative(image.thread.start), 4),
                elf::R_X86_64_TPOFF32 => (image.thread.distance(value), 4),
                elf::R_X86_64_DTPOFF32 => (value.wrapping_sub(image.thread.start), 4),
                _ => continue,
            };
            let distance = matches!(r_type, elf::R_X86_64_TPOFF32 | elf::R_X86_64_DTPOFF32);
            if r_type == elf::R_X86_64_64 {
                image.pointers.insert(place, value);
            }
            if !distance {
                image.addresses.insert(place);
            }
            let section = &mut image.sections[index];
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(to) = section.bytes.get_mut(from..from.saturating_add(width)) {
                to.copy_from_slice(&value.to_le_bytes()[..width]);
            }
        }
    }
    Ok(())
}

/// Debug sections with addresses filled in. Compressed ones are left out: lines are then not known.
fn debug_sections(
    file: &object::File<'_>,
    at: &BTreeMap<usize, u64>,
    placed: &BTreeMap<usize, u64>,
    image: &mut Image,
) -> Result<(), Problem> {
    let mut total = 0u64;
    for s in file.sections() {
        let name = s.name().unwrap_or("");
        if !name.starts_with(".debug_") || placed.contains_key(&s.index().0) {
            continue;
        }
        total = total.saturating_add(s.size());
        let Ok(data) = s.data() else { continue };
        if total > MAX_BYTES
            || s.compressed_data()
                .is_ok_and(|c| c.format != object::CompressionFormat::None)
        {
            continue;
        }
        let mut bytes = data.to_vec();
        for (offset, r) in s.relocations() {
            let RelocationTarget::Symbol(symbol) = r.target() else {
                continue;
            };
            let base = match at.get(&symbol.0) {
                Some(a) => *a,
                // A section symbol of a debug section: offsets into it start at 0.
                None => 0,
            };
            let value = base.wrapping_add(r.addend() as u64);
            let width = match r.flags() {
                RelocationFlags::Elf {
                    r_type: object::elf::R_X86_64_64,
                } => 8,
                RelocationFlags::Elf {
                    r_type: object::elf::R_X86_64_32 | object::elf::R_X86_64_32S,
                } => 4,
                _ => continue,
            };
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(to) = bytes.get_mut(from..from.saturating_add(width)) {
                to.copy_from_slice(&value.to_le_bytes()[..width]);
            }
        }
        image.debug.insert(name.to_string(), bytes);
    }
    Ok(())
}
