//! Items and conditions in terms of the program.

use super::build::Widths;
use super::header::Architecture;
use super::items::{Named, Subject};
use super::names::Locations;
use super::syntax::{Column, Item, Proposition, Question, Value};
use super::{LitmusTest, Observed, show};
use crate::flow::junction;
use crate::x86_core::{Name, Size, address};
use std::collections::BTreeMap;
use wattle_model::{
    Condition, Expr, FamilyId, Observation, Op1, Op2, RegionId, RegisterId, ThreadIndex, ThreadRef,
};

/// What items and conditions are in terms of the program.
pub struct Meaning<'a> {
    pub columns: &'a [Column],
    pub locations: &'a Locations,
    pub widths: &'a [Widths],
    pub addresses: (i64, i64),
}

impl Meaning<'_> {
    pub fn test(&self, q: &Question, names: &[Named], architecture: Architecture) -> LitmusTest {
        let mut names = names.to_vec();
        names.sort_by_key(|n| (!n.shown, self.sort_key(n)));
        let items = names
            .iter()
            .map(|n| Observed {
                name: self.name(n, architecture),
                value: self.observation(n.place),
            })
            .collect();
        let index: BTreeMap<Subject, usize> = names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.place, i))
            .collect();
        let place = |item: &Item| index.get(&self.place(item)?).copied();
        let position = |item: &Item| match place(item) {
            Some(i) => Expr::Atom(i),
            None => Expr::Const(0),
        };
        let observation = |item: &Item| match place(item) {
            Some(i) => self.observation(names[i].place),
            None => Expr::Const(0),
        };
        let address_number = |r, element| {
            let (first, stride) = self.addresses;
            Expr::Const(first + stride * self.locations.cell(r, element))
        };
        let address_of = |r, element: u32| {
            let cell = Expr::Atom(Observation::AddressOf(r));
            let cell = match element {
                0 => cell,
                n => Expr::binary(Op2::Add, cell, Expr::Const(i64::from(n))),
            };
            address(self.addresses, cell)
        };
        let condition = |p: &Proposition| Condition {
            indices: Vec::new(),
            expr: self.expression(p, &observation, &address_of),
        };
        let ids = (0..self.locations.all.len()).map(RegionId::new);
        LitmusTest {
            quantifier: q.quantifier,
            shown: names.iter().filter(|n| n.shown).count(),
            items,
            proposition: self.expression(&q.proposition, &position, &address_number),
            item_filter: q
                .filter
                .as_ref()
                .map(|f| self.expression(f, &position, &address_number)),
            condition: condition(&q.proposition),
            filter: q.filter.as_ref().map(condition),
            text: self.text(q, &|item| Some(&names[place(item)?]), architecture),
            addresses: ids
                .filter(|id| self.locations.location(*id).pointed)
                .map(|id| {
                    let (first, stride) = self.addresses;
                    let name = self.locations.location(id).name.clone();
                    (first + stride * self.locations.cell(id, 0), name)
                })
                .collect(),
        }
    }

    /// Registers by thread, then locations by name, as herd sorts them.
    fn sort_key(&self, n: &Named) -> (i64, Option<Name>, String, u32) {
        match n.place {
            Subject::Register(t, name) => (self.columns[t].number, Some(name), String::new(), 0),
            Subject::Cell(r, element) => {
                let name = self.locations.location(r).name.clone();
                (i64::MAX, None, name, element)
            }
        }
    }

    fn place(&self, item: &Item) -> Option<Subject> {
        Some(match item {
            Item::Register { thread, register } => {
                let t = self.columns.iter().position(|c| c.number == *thread)?;
                Subject::Register(t, Name::parse(register)?)
            }
            Item::Cell { name, element } => Subject::Cell(self.locations.get(name)?, *element),
        })
    }

    fn name(&self, n: &Named, architecture: Architecture) -> String {
        match (n.place, &n.item) {
            (Subject::Register(t, name), Item::Register { register, .. }) => {
                let shown = match architecture {
                    Architecture::X86 => name.text(),
                    Architecture::X86_64 => register.clone(),
                };
                format!("{}:{shown}", self.columns[t].number)
            }
            (Subject::Cell(r, element), _) if self.locations.location(r).array => {
                format!("{}[{element}]", self.locations.location(r).name)
            }
            (Subject::Cell(r, _), _) => format!("[{}]", self.locations.location(r).name),
            (Subject::Register(..), Item::Cell { name, .. }) => name.clone(),
        }
    }

    fn observation(&self, place: Subject) -> Expr<Observation> {
        match place {
            Subject::Register(t, name) => {
                let thread = ThreadRef {
                    family: FamilyId::new(t),
                    index: ThreadIndex::Number(0),
                };
                let widths = &self.widths[t];
                let id = widths.keys().position(|b| *b == name.base).unwrap_or(0);
                let whole = Expr::Atom(Observation::Register(thread, RegisterId::new(id)));
                let width = widths.get(&name.base).copied().unwrap_or(name.size);
                name.read(whole, width)
            }
            Subject::Cell(r, element) => {
                let index = Expr::Const(i64::from(element));
                Expr::Atom(Observation::Cell(r, Box::new(index)))
            }
        }
    }

    /// How a number written next to an item looks in it.
    fn fit(&self, item: &Item, n: i64) -> i64 {
        let (size, signed) = match item {
            Item::Register { register, .. } => {
                (Name::parse(register).map_or(Size::Qword, |n| n.size), true)
            }
            Item::Cell { name, .. } => match self.locations.get(name) {
                Some(id) => self.locations.width(id),
                None => (Size::Qword, true),
            },
        };
        let op = Op1::Wrap {
            bits: size.bits(),
            signed,
        };
        op.apply(n).unwrap_or(n)
    }

    fn expression<A>(
        &self,
        p: &Proposition,
        leaf: &dyn Fn(&Item) -> Expr<A>,
        address: &dyn Fn(RegionId, u32) -> Expr<A>,
    ) -> Expr<A> {
        let all = |ps: &[Proposition], op| {
            let parts = ps.iter().map(|p| self.expression(p, leaf, address));
            junction(op, parts.collect())
        };
        match p {
            Proposition::Atom {
                left, right, equal, ..
            } => {
                let right = match right {
                    Value::Number(n) => Expr::Const(self.fit(left, *n)),
                    Value::Address(name, element) => match self.locations.get(name) {
                        Some(r) => address(r, *element),
                        None => Expr::Const(0),
                    },
                    Value::Item(item) => leaf(item),
                };
                let op = if *equal { Op2::Eq } else { Op2::Ne };
                Expr::binary(op, leaf(left), right)
            }
            Proposition::Not(p) => self.expression(p, leaf, address).negate(),
            Proposition::And(ps) => all(ps, Op2::And).unwrap_or(Expr::TRUE),
            Proposition::Or(ps) => all(ps, Op2::Or).unwrap_or(Expr::FALSE),
            Proposition::Implies(a, b) => {
                let not = self.expression(a, leaf, address).negate();
                Expr::binary(Op2::Or, not, self.expression(b, leaf, address))
            }
        }
    }

    /// The condition as herd prints it.
    fn text<'n>(
        &self,
        q: &Question,
        named: &dyn Fn(&Item) -> Option<&'n Named>,
        architecture: Architecture,
    ) -> String {
        let item = |item: &Item| {
            let found = named(item);
            found.map_or_else(String::new, |n| self.name(n, architecture))
        };
        let shown = show::proposition(&q.proposition, &item);
        format!("{} ({shown})", q.quantifier.keyword())
    }
}
