//! The judge is the processor: random instructions in random states, executed and lifted, and every
//! register, flag and byte compared. What is lifted is evaluated twice, as words and in the words of the
//! model.
//!
//! The code runs in a page of its own between two rows of moves that load and save all registers; its
//! memory operands point into a small buffer.

use crate::bits::{E, VarId};
use crate::graph::{self, BE, CF, LE, LT, OF, Op, PF, SF, Vars, ZF};
use crate::image::Image;
use crate::lift::{Addresses, Lift, Micro};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use wattle_x86::words::agrees;

const BUFFER: usize = 256;

/// Registers, flags and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    registers: [u64; 16],
    /// Vectors, as halves.
    vectors: [u64; 32],
    flags: u64,
    memory: Vec<u8>,
}

/// A page of code and one of data, within reach of 31-bit addresses.
struct Native {
    code: *mut u8,
    data: *mut u8,
}

const IN: usize = 0;
const FLAGS_IN: usize = 128;
const OUT: usize = 136;
const FLAGS_OUT: usize = 264;
const HOST: usize = 272;
const SCRATCH: usize = 280;
const VECTORS: usize = 288;
const MEMORY: usize = 1024;

impl Native {
    fn new() -> Native {
        let page = |protection| {
            // SAFETY: a fresh anonymous mapping, never unmapped.
            let p = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    8192,
                    protection,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT,
                    -1,
                    0,
                )
            };
            assert_ne!(p, libc::MAP_FAILED);
            p.cast::<u8>()
        };
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        Native {
            code: page(rw | libc::PROT_EXEC),
            data: page(rw),
        }
    }

    fn memory_address(&self) -> u64 {
        self.data as u64 + MEMORY as u64
    }

    fn run(&mut self, instruction: &[u8], before: &State) -> State {
        let base = self.data as u64;
        let mut code: Vec<u8> = vec![0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57];
        let at = |offset: usize| (u32::try_from(base).unwrap() + offset as u32).to_le_bytes();
        // mov reg, [abs] (0x8b) or mov [abs], reg (0x89)
        let mov = |code: &mut Vec<u8>, op: u8, reg: u8, offset: usize| {
            code.extend([0x48 | (reg >> 3) << 2, op, (reg & 7) << 3 | 4, 0x25]);
            code.extend(at(offset));
        };
        // movups xmm, [abs] (0x10) or movups [abs], xmm (0x11)
        let movups = |code: &mut Vec<u8>, op: u8| {
            for reg in 0..16u8 {
                code.extend([0x40 | (reg >> 3) << 2, 0x0f, op, (reg & 7) << 3 | 4, 0x25]);
                code.extend(at(VECTORS + 16 * usize::from(reg)));
            }
        };
        mov(&mut code, 0x89, 4, HOST);
        movups(&mut code, 0x10);
        mov(&mut code, 0x8b, 4, SCRATCH);
        code.extend([0xff, 0x34, 0x25]);
        code.extend(at(FLAGS_IN));
        code.push(0x9d);
        for r in 0..16 {
            mov(&mut code, 0x8b, r, IN + 8 * usize::from(r));
        }
        code.extend(instruction);
        for r in 0..16 {
            mov(&mut code, 0x89, r, OUT + 8 * usize::from(r));
        }
        mov(&mut code, 0x8b, 4, SCRATCH);
        code.push(0x9c);
        code.extend([0x8f, 0x04, 0x25]);
        code.extend(at(FLAGS_OUT));
        movups(&mut code, 0x11);
        mov(&mut code, 0x8b, 4, HOST);
        code.extend([
            0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3,
        ]);
        // SAFETY: both pages are ours and large enough; the code saves what a function must save, and
        // its memory operands stay in the data page.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.code, code.len());
            let put = |offset: usize, value: u64| {
                self.data.add(offset).cast::<u64>().write_unaligned(value);
            };
            let get = |offset: usize| self.data.add(offset).cast::<u64>().read_unaligned();
            for (r, value) in before.registers.iter().enumerate() {
                put(IN + 8 * r, *value);
            }
            for (r, value) in before.vectors.iter().enumerate() {
                put(VECTORS + 8 * r, *value);
            }
            put(FLAGS_IN, before.flags);
            put(SCRATCH, base + 1000);
            let memory = self.data.add(MEMORY);
            std::ptr::copy_nonoverlapping(before.memory.as_ptr(), memory, BUFFER);
            let function: extern "C" fn() = std::mem::transmute(self.code);
            function();
            let mut registers = [0; 16];
            for (r, value) in registers.iter_mut().enumerate() {
                *value = get(OUT + 8 * r);
            }
            let mut vectors = [0; 32];
            for (r, value) in vectors.iter_mut().enumerate() {
                *value = get(VECTORS + 8 * r);
            }
            let bytes = std::slice::from_raw_parts(memory, BUFFER).to_vec();
            State {
                registers,
                vectors,
                flags: get(FLAGS_OUT),
                memory: bytes,
            }
        }
    }
}

struct Nothing;

impl Addresses for Nothing {
    fn resolve(&mut self, address: u64) -> Result<E, String> {
        Ok(E::constant(address, 64))
    }
}

/// Lifted operations, carried out. A value is absent where it is undefined.
struct Words {
    values: BTreeMap<VarId, Option<u64>>,
    memory: Vec<u8>,
    base: u64,
    compared: u64,
}

enum Stop {
    /// The processor would fault.
    Fault,
    Undefined,
}

impl Words {
    fn value(&mut self, e: &E) -> Result<u64, Stop> {
        let mut undefined = false;
        e.for_each_var(&mut |v| undefined |= !matches!(self.values.get(&v), Some(Some(_))));
        if undefined {
            return Err(Stop::Undefined);
        }
        let of = |v: VarId| self.values[&v].unwrap_or(0);
        let value = e.eval(&of).ok_or(Stop::Undefined)?;
        self.compared += 1;
        agrees(e, &of, value);
        Ok(value)
    }

    fn run(&mut self, ops: &[Micro]) -> Result<(), Stop> {
        for op in ops {
            match op {
                Micro::If(c, yes, no) => match self.value(c)? {
                    0 => self.run(no)?,
                    _ => self.run(yes)?,
                },
                // The orders come to the same, with one thread.
                Micro::Either(orders) => {
                    for order in orders {
                        let order: Vec<Micro> = order.iter().cloned().map(Micro::Op).collect();
                        self.run(&order)?;
                    }
                }
                Micro::Op(Op::Assign(v, e)) => {
                    let value = match self.value(e) {
                        Ok(value) => Some(value),
                        Err(Stop::Undefined) => None,
                        Err(stop) => return Err(stop),
                    };
                    self.values.insert(*v, value);
                }
                Micro::Op(Op::Load { to, at }) => {
                    let from = self.place(&at.address)?;
                    let bytes = &self.memory[from..from + at.bytes as usize];
                    let value = bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
                    self.values.insert(*to, Some(value));
                }
                Micro::Op(Op::Store { at, value }) => {
                    let from = self.place(&at.address)?;
                    let value = self.value(value)?;
                    let bytes = value.to_le_bytes();
                    self.memory[from..from + at.bytes as usize]
                        .copy_from_slice(&bytes[..at.bytes as usize]);
                }
                Micro::Op(Op::Assert(e, _) | Op::Require(e, _)) => {
                    if self.value(e)? == 0 {
                        return Err(Stop::Fault);
                    }
                }
                Micro::Op(_) => {}
            }
        }
        Ok(())
    }

    fn place(&mut self, address: &E) -> Result<usize, Stop> {
        let address = self.value(address)?;
        let from = address.wrapping_sub(self.base) as usize;
        if from + 8 > BUFFER {
            return Err(Stop::Fault);
        }
        Ok(from)
    }
}

fn number(rng: &mut SmallRng) -> u64 {
    let n: u64 = rng.random();
    match rng.random_range(0..6) {
        0 => n & 3,
        1 => (n & 3).wrapping_neg(),
        2 => 1 << (n & 63),
        3 => (1u64 << (n & 63)).wrapping_sub(1),
        4 => n & 0xffff_ffff,
        _ => n,
    }
}

/// A random encoding; many are no instruction.
fn encoding(rng: &mut SmallRng) -> Vec<u8> {
    let mut code = Vec::new();
    let mut any = |n: u8| rng.random_range(0..n);
    let mut two = |table: &[u8]| table[any(table.len() as u8) as usize];
    let size = two(&[0, 0, 1, 2, 2]);
    if two(&[0, 0, 0, 1]) == 1 {
        code.push(0xf0);
    }
    if size == 1 {
        code.push(0x66);
    }
    // Vectors: after a prefix of their own, or none.
    let vectors = two(&[0, 0, 0, 0, 0, 0, 1]) == 1;
    if vectors && size != 1 {
        match two(&[0, 1, 2]) {
            0 => {}
            1 => code.push(0xf3),
            _ => code.push(0x66),
        }
    }
    if !vectors && two(&[0, 0, 0, 0, 1]) == 1 {
        code.push(0xf3);
    }
    // One byte opcodes, then those after 0f.
    let one: &[u8] = &[
        0x00, 0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x13, 0x18, 0x19, 0x1a,
        0x1b, 0x20, 0x21, 0x22, 0x23, 0x28, 0x29, 0x2a, 0x2b, 0x30, 0x31, 0x32, 0x33, 0x38, 0x39,
        0x3a, 0x3b, 0x04, 0x05, 0x0c, 0x0d, 0x14, 0x15, 0x1c, 0x1d, 0x24, 0x25, 0x2c, 0x2d, 0x34,
        0x35, 0x3c, 0x3d, 0x63, 0x69, 0x6b, 0x80, 0x81, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
        0x8a, 0x8b, 0x8d, 0x98, 0x99, 0xa8, 0xa9, 0xb0, 0xb8, 0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd1,
        0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff, 0x50, 0x58, 0x90, 0xa4, 0xa5, 0xaa, 0xab,
    ];
    let after: &[u8] = &[
        0x40, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4c, 0x4d, 0x4e, 0x4f, 0x90, 0x91,
        0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9c, 0x9d, 0x9e, 0x9f, 0xa3, 0xab, 0xb3,
        0xbb, 0xba, 0xaf, 0xb0, 0xb1, 0xc0, 0xc1, 0xb6, 0xb7, 0xbe, 0xbf, 0xbc, 0xbd, 0xb8, 0xc7,
        0xc7,
    ];
    let rex = match size {
        2 => 0x48 | two(&[0, 0, 1, 4, 5]),
        _ => two(&[0, 0x40, 0x41, 0x44, 0x45]),
    };
    if rex != 0 {
        code.push(rex);
    }
    let moves: &[u8] = &[
        0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x28, 0x29, 0x54, 0x56, 0x57, 0x62, 0x6c,
        0x6d, 0x6e, 0x6f, 0x70, 0x7e, 0x7f, 0xd6, 0xdb, 0xeb, 0xef,
    ];
    if vectors {
        code.extend([0x0f, two(moves)]);
    } else if two(&[0, 0, 1]) == 1 {
        code.push(0x0f);
        code.push(two(after));
    } else {
        let op = two(one);
        code.push(match op {
            0x50 | 0x58 | 0xb0 | 0xb8 => op + two(&[0, 1, 2, 3, 5, 6, 7]),
            op => op,
        });
    }
    // Registers, or memory behind rdi (or r15) with a small displacement.
    let reg = two(&[0, 1, 2, 3, 5, 6, 7, 4]) << 3;
    if two(&[0, 1]) == 0 {
        code.push(0xc0 | reg | two(&[0, 1, 2, 3, 5, 6, 7]));
    } else {
        code.push(0x40 | reg | 7);
        code.push(two(&[0, 1, 2, 4, 8, 16, 24, 0xf8]));
    }
    code.extend((0..8).map(|_| rng.random::<u8>()));
    code
}

fn decode(bytes: &[u8]) -> Option<(Instruction, iced_x86::ConstantOffsets)> {
    let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
    let i = decoder.decode();
    (!i.is_invalid()).then(|| (i, decoder.get_constant_offsets(&i)))
}

#[test]
fn the_processor_agrees() {
    let mut native = Native::new();
    let mut rng = SmallRng::seed_from_u64(20);
    let image = Image::default();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut refused: BTreeMap<String, u32> = BTreeMap::new();
    let (mut compared, mut tries) = (0, 0u64);
    while compared < 120_000 && tries < 20_000_000 {
        tries += 1;
        let bytes = encoding(&mut rng);
        let Some((i, offsets)) = decode(&bytes) else {
            continue;
        };
        let bytes = &bytes[..i.len()];
        // The stack pointer is only moved by push and pop.
        let touches = |r: iced_x86::Register| r.full_register() == iced_x86::Register::RSP;
        if (0..i.op_count()).any(|k| touches(i.op_register(k)))
            || i.is_jmp_near_indirect()
            || i.is_call_near_indirect()
            || i.is_jmp_far_indirect()
            || i.is_call_far_indirect()
        {
            continue;
        }
        // Older processors take these for others.
        let there = match i.mnemonic() {
            Mnemonic::Lzcnt => is_x86_feature_detected!("lzcnt"),
            Mnemonic::Tzcnt => is_x86_feature_detected!("bmi1"),
            Mnemonic::Popcnt => is_x86_feature_detected!("popcnt"),
            Mnemonic::Rdrand => is_x86_feature_detected!("rdrand"),
            Mnemonic::Rdseed => is_x86_feature_detected!("rdseed"),
            Mnemonic::Cmpxchg16b => is_x86_feature_detected!("cmpxchg16b"),
            _ => true,
        };
        // The kernel is not asked.
        if !there
            || matches!(
                i.mnemonic(),
                Mnemonic::Rdpid | Mnemonic::Xgetbv | Mnemonic::Syscall
            )
        {
            continue;
        }
        let mut vars = Vars::default();
        let mut nothing = Nothing;
        let mut lift = Lift::new(&image, &mut nothing, &mut vars, offsets);
        let name = format!("{:?}", i.code());
        if lift.instruction(&i).is_err() {
            *refused.entry(name).or_default() += 1;
            continue;
        }
        let ops = lift.ops();
        let mut registers = [0; 16];
        for r in &mut registers {
            *r = number(&mut rng);
        }
        let place = native.memory_address() + 64 + 8 * rng.random_range(0..8);
        // All of 16 bytes must be aligned, but for the moves that say they need not.
        let at = place.wrapping_add(i.memory_displacement64());
        let aligned = !matches!(
            i.mnemonic(),
            Mnemonic::Movups | Mnemonic::Movupd | Mnemonic::Movdqu
        );
        if i.memory_size().size() == 16 && aligned && !at.is_multiple_of(16) {
            continue;
        }
        let mut vectors = [0; 32];
        for v in &mut vectors {
            *v = number(&mut rng);
        }
        (registers[7], registers[15]) = (place, place);
        registers[4] = native.memory_address() + 200;
        // Carry, parity, zero, sign, overflow; bit 1 is always set.
        let flags = (rng.random::<u64>() & 0x8c5) | 2;
        let memory = (0..BUFFER).map(|_| rng.random()).collect::<Vec<u8>>();
        let mut before = State {
            registers,
            vectors,
            flags,
            memory,
        };
        if rng.random_range(0..4) == 0 {
            // Comparisons come out equal now and then.
            let from = (place - native.memory_address()) as usize;
            let word =
                |at: usize| u64::from_le_bytes(before.memory[at..at + 8].try_into().unwrap());
            let first = word(from);
            let displacement = i.memory_displacement64() as usize;
            if matches!(i.mnemonic(), Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b)
                && displacement < 64
            {
                let half = i.memory_size().size() / 2;
                let part = |at: usize| word(at) & (u64::MAX >> (64 - 8 * half));
                let pair = (part(from + displacement), part(from + displacement + half));
                (before.registers[0], before.registers[2]) = pair;
            } else {
                before.registers[0] = first;
            }
        }
        if i.is_string_instruction() {
            before.registers[6] = place + 8;
            before.registers[1] = rng.random_range(0..5);
        }
        if rng.random_range(0..3) == 0 {
            before.registers[2] = ((before.registers[0] as i64) >> 63) as u64;
            before.registers[2] *= u64::from(rng.random::<bool>());
        }
        let flag = |bit: u32| Some(before.flags >> bit & 1);
        let mut values: BTreeMap<VarId, Option<u64>> = BTreeMap::new();
        for (r, value) in before.registers.iter().enumerate() {
            values.insert(VarId(r as u32), Some(*value));
        }
        for (half, value) in before.vectors.iter().enumerate() {
            let v = graph::vector(half as u32 / 2)[half % 2];
            values.insert(v, Some(*value));
        }
        let (z, c, s, o) = (flag(6), flag(0), flag(7), flag(11));
        let less = s.zip(o).map(|(s, o)| s ^ o);
        let either = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a | b);
        values.extend([
            (ZF, z),
            (CF, c),
            (SF, s),
            (OF, o),
            (PF, flag(2)),
            (LT, less),
        ]);
        values.extend([(BE, either(c, z)), (LE, either(less, z))]);
        values.insert(graph::CANARY, Some(0));
        let mut words = Words {
            values,
            memory: before.memory.clone(),
            base: native.memory_address(),
            compared: 0,
        };
        match words.run(&ops) {
            Ok(()) => {}
            Err(Stop::Fault | Stop::Undefined) => continue,
        }
        let after = native.run(bytes, &before);
        // What becomes of the upper half then, processors do not agree on.
        let found = matches!(i.mnemonic(), Mnemonic::Bsf | Mnemonic::Bsr);
        if found && after.flags >> 6 & 1 == 1 {
            continue;
        }
        let shown =
            || format!("{i} ({bytes:02x?})\nbefore {before:x?}\nafter {after:x?}\nlifted {ops:?}");
        for r in 0..16 {
            if let Some(value) = words.values[&VarId(r as u32)] {
                assert_eq!(value, after.registers[r], "register {r} of {}", shown());
            }
        }
        for (half, value) in after.vectors.iter().enumerate() {
            let v = graph::vector(half as u32 / 2)[half % 2];
            assert_eq!(words.values[&v], Some(*value), "half {half} of {}", shown());
        }
        assert_eq!(words.memory, after.memory, "memory of {}", shown());
        let (z, c) = (after.flags >> 6 & 1, after.flags & 1);
        let (s, o) = (after.flags >> 7 & 1, after.flags >> 11 & 1);
        let all = [
            (ZF, z),
            (CF, c),
            (SF, s),
            (OF, o),
            (PF, after.flags >> 2 & 1),
            (LT, s ^ o),
            (BE, c | z),
            (LE, z | (s ^ o)),
        ];
        for (flag, expected) in all {
            if let Some(value) = words.values[&flag] {
                assert_eq!(value, expected, "flag {} of {}", flag.0, shown());
            }
        }
        compared += 1;
        *counts.entry(name).or_default() += 1;
    }
    println!(
        "{compared} cases, {} forms; refused: {refused:?}",
        counts.len()
    );
    assert!(
        compared >= 100_000 && counts.len() > 250,
        "{compared} cases of {} forms",
        counts.len()
    );
    let vectors = counts.keys().filter(|n| n.contains("xmm")).count();
    assert!(vectors >= 30, "{vectors} forms of vectors");
    let rare: Vec<_> = counts.iter().filter(|(_, n)| **n < 3).collect();
    assert!(rare.len() < 30, "{rare:?}");
}
