//! The operations against explicit sets of words, all words up to a length.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use weakspot_model::ids::Loc;

use super::{Language, Languages, Symbol};

type Words = BTreeSet<Vec<Symbol>>;

/// How a language was made.
#[derive(Debug, Clone)]
enum Expr {
    Empty,
    Word(Vec<u32>),
    Append(Box<Expr>, u32),
    Load(Box<Expr>, u32, i64, bool),
    Quotient(Box<Expr>, u32),
    Union(Box<Expr>, Box<Expr>),
    AppendStar(Box<Expr>, Box<Expr>),
}

/// Two locations with two values each: symbols 0 to 3 are (0,0), (0,1), (1,0), (1,1).
fn alphabet() -> Languages {
    let mut languages = Languages::new();
    for loc in 0..2 {
        for value in 0..2 {
            languages.symbol(Loc(loc), value);
        }
    }
    languages
}

fn build(languages: &mut Languages, expr: &Expr) -> Language {
    match expr {
        Expr::Empty => Language::EMPTY,
        Expr::Word(word) => languages.word(&word.iter().map(|&s| Symbol(s)).collect::<Vec<_>>()),
        Expr::Append(inner, symbol) => {
            let inner = build(languages, inner);
            languages.append(inner, Symbol(*symbol))
        }
        Expr::Load(inner, loc, value, in_memory) => {
            let inner = build(languages, inner);
            languages.after_load(inner, Loc(*loc), *value, *in_memory)
        }
        Expr::Quotient(inner, symbol) => {
            let inner = build(languages, inner);
            languages.quotient(inner, Symbol(*symbol))
        }
        Expr::Union(left, right) => {
            let (left, right) = (build(languages, left), build(languages, right));
            languages.union(left, right)
        }
        Expr::AppendStar(prefix, repeated) => {
            let (prefix, repeated) = (build(languages, prefix), build(languages, repeated));
            languages.append_star(prefix, repeated).unwrap()
        }
    }
}

/// All words of at most `length` symbols, by the definition of each operation.
fn words(expr: &Expr, length: usize) -> Words {
    match expr {
        Expr::Empty => Words::new(),
        Expr::Word(word) => {
            let word: Vec<Symbol> = word.iter().map(|&s| Symbol(s)).collect();
            (word.len() <= length).then_some(word).into_iter().collect()
        }
        Expr::Append(inner, symbol) if length > 0 => {
            let longer = |mut word: Vec<Symbol>| {
                word.push(Symbol(*symbol));
                word
            };
            words(inner, length - 1).into_iter().map(longer).collect()
        }
        Expr::Append(..) => Words::new(),
        Expr::Load(inner, loc, value, in_memory) => {
            let gives = |word: &Vec<Symbol>| {
                let last = word.iter().rev().find(|symbol| symbol.0 / 2 == *loc);
                last.map_or(*in_memory, |symbol| i64::from(symbol.0 % 2) == *value)
            };
            words(inner, length).into_iter().filter(gives).collect()
        }
        Expr::Quotient(inner, symbol) => {
            let rest = |word: Vec<Symbol>| word.strip_prefix(&[Symbol(*symbol)]).map(<[_]>::to_vec);
            words(inner, length + 1).into_iter().filter_map(rest).collect()
        }
        Expr::Union(left, right) => &words(left, length) | &words(right, length),
        Expr::AppendStar(prefix, repeated) => {
            let mut all = words(prefix, length);
            let round = words(repeated, length);
            loop {
                let join = |word: &Vec<Symbol>, more: &Vec<Symbol>| [&word[..], &more[..]].concat();
                let more: Words = all.iter().flat_map(|w| round.iter().map(move |r| join(w, r))).collect();
                let before = all.len();
                all.extend(more.into_iter().filter(|word| word.len() <= length));
                if all.len() == before {
                    return all;
                }
            }
        }
    }
}

/// Every word over the alphabet of at most `length` symbols.
fn all_words(length: usize) -> Vec<Vec<Symbol>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..length {
        let longer = |word: &Vec<Symbol>| (0..4).map(|s| [&word[..], &[Symbol(s)]].concat()).collect::<Vec<_>>();
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

fn accepted(languages: &Languages, language: Language, length: usize) -> Words {
    all_words(length).into_iter().filter(|word| languages.contains(language, word)).collect()
}

fn expressions() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        1 => Just(Expr::Empty),
        8 => proptest::collection::vec(0_u32..4, 0..4).prop_map(Expr::Word),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let boxed = inner.prop_map(Box::new);
        prop_oneof![
            3 => (boxed.clone(), 0_u32..4).prop_map(|(e, s)| Expr::Append(e, s)),
            2 => (boxed.clone(), 0_u32..2, 0_i64..2, any::<bool>()).prop_map(|(e, l, v, m)| Expr::Load(e, l, v, m)),
            2 => (boxed.clone(), 0_u32..4).prop_map(|(e, s)| Expr::Quotient(e, s)),
            2 => (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Expr::Union(a, b)),
            3 => (boxed.clone(), boxed).prop_map(|(a, b)| Expr::AppendStar(a, b)),
        ]
    })
}

const LENGTH: usize = 5;

/// All ways to leave stores out that are followed at once by another store to the same location.
fn thinnings(word: &[Symbol]) -> Words {
    let mut all = Words::from([word.to_vec()]);
    for at in 1..word.len() {
        if word[at - 1].0 / 2 == word[at].0 / 2 {
            all.extend(thinnings(&[&word[..at - 1], &word[at..]].concat()));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_has_the_words_of_its_definition(expr in expressions()) {
        let mut languages = alphabet();
        let language = build(&mut languages, &expr);
        let expected = words(&expr, LENGTH);
        prop_assert_eq!(&accepted(&languages, language, LENGTH), &expected);
        prop_assert_eq!(languages.has_empty_word(language), expected.contains(&Vec::new()));
        for symbol in 0..4 {
            let begins = languages.first(language).any(|s| s == Symbol(symbol));
            let quotient = languages.quotient(language, Symbol(symbol));
            prop_assert_eq!(begins, quotient != Language::EMPTY);
        }
    }

    #[test]
    fn a_shortest_word_is_in_the_language_and_nothing_is_shorter(expr in expressions()) {
        let mut languages = alphabet();
        let language = build(&mut languages, &expr);
        match languages.shortest(language) {
            None => prop_assert_eq!(language, Language::EMPTY),
            Some(word) => {
                prop_assert!(languages.contains(language, &word));
                let shorter = accepted(&languages, language, word.len().saturating_sub(1).min(LENGTH));
                prop_assert!(shorter.iter().all(|other| other.len() >= word.len()));
            }
        }
    }

    #[test]
    fn equal_languages_are_the_same_and_inclusion_is_an_order(left in expressions(), right in expressions()) {
        let mut languages = alphabet();
        let (left_id, right_id) = (build(&mut languages, &left), build(&mut languages, &right));
        let (left_words, right_words) = (words(&left, LENGTH), words(&right, LENGTH));
        let included = languages.includes(right_id, left_id);
        prop_assert!(!included || left_words.is_subset(&right_words));
        prop_assert_eq!(included && languages.includes(left_id, right_id), left_id == right_id);
        let union = languages.union(left_id, right_id);
        prop_assert_eq!(included, union == right_id, "inclusion and union disagree");
        // Building the same language another way gives the same object.
        prop_assert_eq!(languages.union(right_id, left_id), union);
        prop_assert_eq!(languages.union(union, left_id), union);
    }

    #[test]
    fn suffixes_are_exactly_what_can_be_appended(prefix in expressions(), whole in expressions()) {
        let mut languages = alphabet();
        let (prefix, whole) = (build(&mut languages, &prefix), build(&mut languages, &whole));
        let suffixes = languages.suffixes(prefix, whole);
        for word in all_words(3) {
            let appended = word.iter().fold(prefix, |language, &symbol| languages.append(language, symbol));
            let fits = prefix != Language::EMPTY && languages.includes(whole, appended);
            prop_assert_eq!(languages.contains(suffixes, &word), fits, "{:?}", word);
        }
    }

    #[test]
    fn thinned_words_are_words_with_overwritten_stores_left_out(expr in expressions()) {
        let mut languages = alphabet();
        let language = build(&mut languages, &expr);
        let thinned = languages.thinned(language);
        prop_assert_eq!(languages.thinned(thinned), thinned);
        for word in accepted(&languages, language, LENGTH).iter().flat_map(|word| thinnings(word)) {
            prop_assert!(languages.contains(thinned, &word), "{:?} is missing", word);
        }
        for word in accepted(&languages, thinned, 3) {
            let (thick, kept) = languages.thickened(language, &word).unwrap();
            prop_assert!(languages.contains(language, &thick));
            let kept: Vec<Symbol> = thick.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(s, _)| *s).collect();
            prop_assert_eq!(&kept, &word);
            prop_assert!(thick.len() > 8 || thinnings(&thick).contains(&word), "{:?} to {:?}", thick, word);
        }
    }

    #[test]
    fn last_stores_name_the_loads_that_can_succeed(expr in expressions(), loc in 0_u32..2) {
        let mut languages = alphabet();
        let language = build(&mut languages, &expr);
        let last = languages.last_stores(language, Loc(loc)).clone();
        for value in 0..2 {
            let forwarded = languages.after_load(language, Loc(loc), value, false);
            prop_assert_eq!(last.values.contains(&value), forwarded != Language::EMPTY);
        }
        let without = languages.after_load(language, Loc(loc), 7, true);
        prop_assert_eq!(last.absent, without != Language::EMPTY);
    }
}

#[test]
fn the_cycle_of_the_papers_example_is_one_language_however_it_is_made() {
    let mut languages = alphabet();
    let (zero, one) = (Symbol(0), Symbol(1));
    let (first, round) = (languages.word(&[one]), languages.word(&[zero, one]));
    let accelerated = languages.append_star(first, round).unwrap();
    let (round, last) = (languages.word(&[one, zero]), languages.word(&[]));
    let pairs = languages.append_star(last, round).unwrap();
    assert_eq!(languages.append(pairs, one), accelerated);
    let once_more = languages.append(accelerated, zero);
    let once_more = languages.append(once_more, one);
    assert!(languages.includes(accelerated, once_more), "state 6 of Fig. 3 is included in state 4");
    assert_ne!(accelerated, once_more);
}
