//! What all threads of a program share: the file, the objects in memory, places in the code.

use crate::bits::{Base, E};
use crate::image::{Image, Symbol, plain_name};
use crate::lift::Addresses;
use crate::lines::{Frame, Lines};
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{FamilyId, RegionId, Span};

/// How many there are of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    One,
    PerThread(FamilyId),
    Array(u32),
}

/// A piece of shared memory.
#[derive(Clone, Debug)]
pub struct Object {
    pub name: String,
    pub size: u64,
    pub copies: Copies,
    /// What is there at first: once for all, or for each element.
    pub contents: Vec<Contents>,
    /// Where it begins, if it is part of the file.
    pub start: Option<u64>,
    pub span: Span,
    /// Never written: what it holds is what the file says.
    pub constant: bool,
    /// The region the program declared for it.
    pub region: Option<RegionId>,
    /// Where it begins on the stack of each thread, if it is there.
    pub stack: Option<i64>,
}

/// What an object holds at first.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub start: u64,
    /// Zero past the end.
    pub init: Vec<u8>,
    /// Words that are addresses, by offset; none where the address is of nothing we know.
    pub pointers: BTreeMap<u64, Option<(Base, i64)>>,
}

impl Contents {
    /// The number these bytes are.
    pub fn number(&self, offset: u64, bytes: u32) -> u64 {
        let byte = |k: u64| {
            let at = usize::try_from(offset.saturating_add(k)).unwrap_or(usize::MAX);
            u64::from(self.init.get(at).copied().unwrap_or(0))
        };
        (0..u64::from(bytes)).rev().fold(0, |v, k| v << 8 | byte(k))
    }

    /// Whether some of these bytes are part of an address.
    pub fn has_address(&self, offset: u64, bytes: u32) -> bool {
        let end = offset.saturating_add(u64::from(bytes));
        let all = self.pointers.range(offset.saturating_sub(7)..end);
        all.into_iter().next().is_some()
    }
}

/// More objects than this are not looked through for addresses.
const MAX_OBJECTS: usize = 4096;

pub struct World {
    pub image: Image,
    pub lines: Lines,
    pub objects: Vec<Object>,
    /// Objects of the file, by address.
    globals: BTreeMap<u64, Base>,
    /// Start, end and first symbol of what has a name, without overlaps.
    extents: Vec<(u64, u64, usize)>,
    /// Starts of objects that are kept as elements of one, because some pointer may point at either.
    pub together: Vec<Vec<u64>>,
    /// Regions of which each thread may keep its own object, and where the objects are that they are.
    pub keep: BTreeSet<RegionId>,
    pub kept: BTreeMap<usize, i64>,
    /// Parts of the stack that other threads get the addresses of, from where to where, by family.
    pub shown: BTreeMap<usize, Vec<(i64, i64)>>,
    /// Functions that are called and are not there, as the linker calls them.
    pub missing: BTreeSet<String>,
    decoded: BTreeMap<u64, (Instruction, iced_x86::ConstantOffsets)>,
}

/// Something in the code that is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub address: Option<u64>,
    pub what: String,
}

impl Refusal {
    pub fn at(address: u64, what: impl Into<String>) -> Refusal {
        Refusal {
            address: Some(address),
            what: what.into(),
        }
    }
}

impl World {
    /// Forgets what was found of memory, but for what belongs together.
    pub fn again(&mut self) {
        self.objects.clear();
        self.globals.clear();
        self.kept.clear();
    }

    pub fn new(image: Image) -> World {
        let mut extents: Vec<(u64, u64, usize)> = Vec::new();
        let named = image.symbols.iter().enumerate();
        for (k, s) in named.filter(|(_, s)| !s.code && s.size > 0) {
            let end = s.address.saturating_add(s.size);
            match extents.last_mut() {
                Some(last) if s.address < last.1 => last.1 = last.1.max(end),
                _ => extents.push((s.address, end, k)),
            }
        }
        World {
            lines: Lines::new(&image),
            image,
            objects: Vec::new(),
            globals: BTreeMap::new(),
            extents,
            together: Vec::new(),
            keep: BTreeSet::new(),
            kept: BTreeMap::new(),
            shown: BTreeMap::new(),
            missing: BTreeSet::new(),
            decoded: BTreeMap::new(),
        }
    }

    pub fn decode(
        &mut self,
        address: u64,
    ) -> Result<(Instruction, iced_x86::ConstantOffsets), String> {
        if let Some(known) = self.decoded.get(&address) {
            return Ok(*known);
        }
        let code = self.image.section_at(address).is_some_and(|s| s.code);
        let bytes = self.image.bytes_at(address).filter(|_| code);
        let Some(bytes) = bytes else {
            return Err("there is no code".to_string());
        };
        let bytes = &bytes[..bytes.len().min(16)];
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            let shown: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
            return Err(format!("the bytes {} are no instruction", shown.join(" ")));
        }
        let offsets = decoder.get_constant_offsets(&instruction);
        self.decoded.insert(address, (instruction, offsets));
        Ok((instruction, offsets))
    }

    /// Where the instructions are that were looked at.
    pub fn instructions(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        self.decoded.values().map(|(i, _)| i.ip()..i.next_ip())
    }

    /// The next address after this one that a function takes (`lea`).
    pub fn next_named(&self, function: &Symbol, address: u64) -> Option<u64> {
        let bytes = self.image.bytes_at(function.address)?;
        let size = usize::try_from(function.size).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(size)];
        let all = Decoder::with_ip(64, bytes, function.address, DecoderOptions::NONE);
        let taken = all
            .into_iter()
            .filter(|i| i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand());
        let taken = taken.map(|i| i.ip_rel_memory_address());
        taken.filter(|a| *a > address).min()
    }

    /// The instruction as text.
    pub fn text(&self, address: u64) -> String {
        let Some((instruction, _)) = self.decoded.get(&address) else {
            return format!("{address:#x}");
        };
        let mut formatter = IntelFormatter::new();
        formatter
            .options_mut()
            .set_space_after_operand_separator(true);
        formatter.options_mut().set_rip_relative_addresses(true);
        let mut text = String::new();
        formatter.format(instruction, &mut text);
        text
    }

    /// `name+12`.
    pub fn place(&self, address: u64) -> String {
        match self.image.symbol_at(address) {
            Some(s) => match address - s.address {
                0 => plain_name(&s.name),
                n => format!("{}+{n:#x}", plain_name(&s.name)),
            },
            None => format!("{address:#x}"),
        }
    }

    pub fn frames(&self, address: u64) -> Vec<Frame> {
        self.lines.frames(address)
    }

    /// `ticket.c:12`, or the place in the code where lines are not known.
    pub fn source(&self, address: u64) -> String {
        match self.frames(address).first() {
            Some(f) => format!("{}:{}", f.file, f.line),
            None => self.place(address),
        }
    }

    /// A refusal as one sentence.
    pub fn describe(&self, refusal: &Refusal) -> String {
        let Some(address) = refusal.address else {
            return refusal.what.clone();
        };
        let text = self.text(address);
        let place = self.place(address);
        let frames: Vec<String> = self
            .frames(address)
            .iter()
            .map(|f| format!("{}:{}", f.file, f.line))
            .collect();
        let lines = match frames.is_empty() {
            true => String::new(),
            false => format!(" ({})", frames.join(", inlined at ")),
        };
        format!("{place}{lines}: `{text}`: {}", refusal.what)
    }

    /// The symbol a function begins with.
    pub fn function_name(&self, address: u64) -> Option<&str> {
        if let Some(name) = self.image.externs.get(&address) {
            return Some(name);
        }
        let symbol = self.image.symbol_at(address)?;
        (symbol.address == address).then_some(symbol.name.as_str())
    }

    /// Where an object of the file begins.
    pub fn start_of(&self, object: usize) -> Option<u64> {
        self.objects.get(object)?.start
    }

    /// The object an address is in, and those that it points at, and so on.
    pub fn object_at(&mut self, address: u64) -> Option<(Base, i64)> {
        let first = self.objects.len();
        let found = self.object_alone(address)?;
        let mut next = first;
        while next < self.objects.len() && next < MAX_OBJECTS {
            for k in 0..self.objects[next].contents.len() {
                let Contents { start, .. } = self.objects[next].contents[k];
                let end = start.saturating_add(self.objects[next].size);
                let words: Vec<(u64, u64)> = (self.image.pointers.range(start..end))
                    .map(|(at, to)| (at - start, *to))
                    .collect();
                for (at, to) in words {
                    let code = self.image.section_at(to).is_some_and(|s| s.code);
                    let base = match code || self.image.externs.contains_key(&to) {
                        true => Some((Base::Code, to as i64)),
                        false => self.object_alone(to),
                    };
                    self.objects[next].contents[k].pointers.insert(at, base);
                }
            }
            next += 1;
        }
        Some(found)
    }

    /// What stands for each thread of a family: nobody can look into it, but its address tells who it is.
    pub fn itself(&mut self, family: FamilyId) -> usize {
        let copies = Copies::PerThread(family);
        let itself = |o: &Object| o.copies == copies && o.size == 0;
        if let Some(known) = self.objects.iter().position(itself) {
            return known;
        }
        self.objects.push(Object {
            name: "thread".to_string(),
            size: 0,
            copies,
            contents: vec![Contents::default()],
            start: None,
            span: Span::NONE,
            constant: true,
            region: None,
            stack: None,
        });
        self.objects.len() - 1
    }

    /// Name, start and end of what an address belongs to: a symbol with all that overlap it, or the room
    /// between two.
    fn extent(&self, address: u64) -> Option<(String, u64, u64)> {
        let section = self.image.section_at(address)?;
        let next = self.extents.partition_point(|e| e.0 <= address);
        let before = next.checked_sub(1).map(|k| &self.extents[k]);
        let end = section.address.saturating_add(section.size);
        Some(match before {
            Some((from, to, symbol)) if address < *to => {
                let name = plain_name(&self.image.symbols[*symbol].name);
                (name, *from, (*to).min(end))
            }
            _ => {
                let from = before.map_or(0, |e| e.1).max(section.address);
                let to = self.extents.get(next).map_or(end, |e| e.0.min(end));
                (section.name.clone(), from, to)
            }
        })
    }

    fn object_alone(&mut self, address: u64) -> Option<(Base, i64)> {
        let (name, start, end) = self.extent(address)?;
        let offset = (address - start) as i64;
        if let Some(known) = self.globals.get(&start) {
            return Some((*known, offset));
        }
        let constant = !self.image.section_at(address)?.writable;
        let size = (end - start).min(1 << 20);
        let together = self.together.iter().find(|all| all.contains(&start));
        let starts = together.cloned().unwrap_or_else(|| vec![start]);
        let id = self.objects.len();
        let contents = |start: u64| Contents {
            start,
            init: (0..size)
                .map(|k| self.image.byte(start.wrapping_add(k)).unwrap_or(0))
                .collect(),
            pointers: BTreeMap::new(),
        };
        self.objects.push(Object {
            name,
            size,
            copies: match starts.len() {
                1 => Copies::One,
                n => Copies::Array(n as u32),
            },
            contents: starts.iter().map(|s| contents(*s)).collect(),
            start: Some(start),
            span: Span::NONE,
            constant,
            region: None,
            stack: None,
        });
        for (k, s) in starts.iter().enumerate() {
            let base = match starts.len() {
                1 => Base::Object(id),
                _ => Base::Element(id, k as u32),
            };
            self.globals.insert(*s, base);
        }
        Some((self.globals[&start], offset))
    }
}

/// The address as an expression.
pub fn resolve(world: &mut World, address: u64) -> Result<E, String> {
    if world.image.externs.contains_key(&address) {
        return Ok(E::Address(Base::Code, address as i64));
    }
    let Some(section) = world.image.section_at(address) else {
        // One past the end of an object is no place to read, but may be computed.
        return match world.image.section_at(address.wrapping_sub(1)) {
            Some(_) => Err("an address past the end of a section".to_string()),
            None => Err(format!("{address:#x} is no address of this file")),
        };
    };
    if section.code {
        return Ok(E::Address(Base::Code, address as i64));
    }
    if section.thread {
        return Ok(world.image.thread.at(address));
    }
    match world.object_at(address) {
        Some((base, offset)) => Ok(E::Address(base, offset)),
        None => Err(format!("{address:#x} is no address of this file")),
    }
}

/// Addresses resolved ahead, so that lifting can borrow the image.
pub struct Ahead(pub BTreeMap<u64, Result<E, String>>);

impl Addresses for Ahead {
    fn resolve(&mut self, address: u64) -> Result<E, String> {
        match self.0.get(&address) {
            Some(known) => known.clone(),
            None => Err(format!("{address:#x} is no address of this file")),
        }
    }
}

/// Every address an instruction could speak of, resolved.
pub fn ahead(world: &mut World, i: &Instruction) -> Ahead {
    let mut all = BTreeMap::new();
    let mut candidates = Vec::new();
    if i.is_ip_rel_memory_operand() {
        candidates.push(i.ip_rel_memory_address());
    }
    candidates.push(i.memory_displacement64());
    candidates.push(i.memory_displacement64() & 0xffff_ffff);
    for k in 0..i.op_count() {
        if let Ok(value) = i.try_immediate(k) {
            candidates.push(value);
            candidates.push(value & 0xffff_ffff);
        }
    }
    let held: Vec<u64> = candidates
        .iter()
        .filter_map(|c| world.image.got.get(c).copied())
        .collect();
    for c in candidates.into_iter().chain(held) {
        if c < 4096 || all.contains_key(&c) {
            continue;
        }
        // Objects are made only for what is an address for sure.
        let mapped = world.image.section_at(c).is_some() || world.image.externs.contains_key(&c);
        if mapped {
            let value = resolve(world, c);
            all.insert(c, value);
        }
    }
    Ahead(all)
}
