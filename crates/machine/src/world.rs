//! What all threads of a program share: the file, the objects in memory, places in the code.

use crate::bits::{Base, E};
use crate::image::{Image, plain_name};
use crate::lift::Addresses;
use crate::lines::{Frame, Lines};
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter};
use std::collections::BTreeMap;
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
    /// The initial bytes; zero past the end.
    pub init: Vec<u8>,
    /// Words that are addresses at first, by offset.
    pub pointers: BTreeMap<u64, u64>,
    pub span: Span,
    /// Never written: what it holds is what the file says.
    pub constant: bool,
    /// The region the program declared for it.
    pub region: Option<RegionId>,
}

pub struct World {
    pub image: Image,
    pub lines: Lines,
    pub objects: Vec<Object>,
    /// Objects of the file, by address.
    globals: BTreeMap<u64, usize>,
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
    pub fn new(image: Image) -> World {
        World {
            lines: Lines::new(&image),
            image,
            objects: Vec::new(),
            globals: BTreeMap::new(),
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
        let mut all = self.globals.iter();
        all.find_map(|(start, o)| (*o == object).then_some(*start))
    }

    pub fn object_at(&mut self, address: u64) -> Option<(usize, i64)> {
        let image = &self.image;
        let section = image.section_at(address)?;
        let symbol = image.symbol_at(address).filter(|s| !s.code && s.size > 0);
        let (name, start, size) = match symbol {
            Some(s) => (plain_name(&s.name), s.address, s.size),
            None => (section.name.clone(), section.address, section.size),
        };
        let offset = (address - start) as i64;
        if let Some(known) = self.globals.get(&start) {
            return Some((*known, offset));
        }
        let size = size.min(1 << 20);
        let init = (0..size)
            .map(|k| image.byte(start + k).unwrap_or(0))
            .collect();
        let pointers = image.pointers.range(start..start + size);
        let pointers = pointers.map(|(at, to)| (at - start, *to)).collect();
        let id = self.objects.len();
        self.objects.push(Object {
            name,
            size,
            copies: Copies::One,
            init,
            pointers,
            span: Span::NONE,
            constant: !section.writable,
            region: None,
        });
        self.globals.insert(start, id);
        Some((id, offset))
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
    if section.name.starts_with(".tbss") || section.name.starts_with(".tdata") {
        return Err("memory of a thread (`thread_local`) is not supported".to_string());
    }
    match world.object_at(address) {
        Some((object, offset)) => Ok(E::Address(Base::Object(object), offset)),
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
