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

    /// As before, but with sets so dense that a suffix often fits some words of the prefix and not others.
    #[test]
    fn suffixes_fit_every_word_of_the_prefix(prefix in 1_u32..8, whole in any::<u32>()) {
        let mut languages = alphabet();
        let of_two = |word: &Vec<Symbol>| word.iter().all(|symbol| symbol.0 < 2);
        let short: Vec<Vec<Symbol>> = all_words(4).into_iter().filter(of_two).collect();
        let mut choose = |mask: u32| {
            let chosen = short.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0);
            chosen.fold(Language::EMPTY, |all, (_, word)| {
                let one = languages.word(word);
                languages.union(all, one)
            })
        };
        let (prefix, whole) = (choose(prefix), choose(whole));
        let suffixes = languages.suffixes(prefix, whole);
        for word in short.iter().filter(|word| word.len() < 4) {
            let appended = word.iter().fold(prefix, |language, &symbol| languages.append(language, symbol));
            prop_assert_eq!(languages.contains(suffixes, word), languages.includes(whole, appended), "{:?}", word);
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

/// Words of configurations of two threads: each a few letters and a place to rest.
mod configurations {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use weakspot_model::ids::{Loc, ThreadId};

    use super::super::{Language, Languages, Letter, Symbol};
    use crate::threads::LocalId;

    type Word = Vec<Letter>;

    fn letters() -> impl Strategy<Value = Letter> {
        prop_oneof![6 => (0_u32..2, 0_i64..2).prop_map(|(loc, value)| Letter::Store(Loc(loc), value)), 1 => Just(Letter::Fence)]
    }

    /// No fence comes first, last or after another.
    fn part(thread: usize) -> impl Strategy<Value = Word> {
        (proptest::collection::vec(letters(), 0..5), 0_u32..2).prop_map(move |(mut word, local)| {
            word.dedup_by(|a, b| *a == Letter::Fence && *b == Letter::Fence);
            while word.first() == Some(&Letter::Fence) {
                word.remove(0);
            }
            word.push(Letter::Rest(ThreadId::new(thread), LocalId(local)));
            word
        })
    }

    fn sets() -> impl Strategy<Value = BTreeSet<Word>> {
        let word = (part(0), part(1)).prop_map(|(first, second)| [first, second].concat());
        proptest::collection::btree_set(word, 0..6)
    }

    fn build(languages: &mut Languages, words: &BTreeSet<Word>) -> Language {
        words.iter().fold(Language::EMPTY, |all, word| {
            let symbols: Vec<Symbol> = word.iter().map(|&letter| languages.symbol_of(letter)).collect();
            let one = languages.word(&symbols);
            languages.union(all, one)
        })
    }

    /// Where the part of a thread begins.
    fn begins(word: &Word, thread: ThreadId) -> usize {
        let ends = |letter: &Letter| matches!(letter, Letter::Rest(other, _) if other.index() + 1 == thread.index());
        word.iter().position(ends).map_or(0, |at| at + 1)
    }

    /// A commit by definition.
    fn committed(word: &Word, thread: ThreadId, store: (Loc, i64), overtakes: bool) -> Option<Word> {
        let start = begins(word, thread);
        let reached = |letter: &&Letter| match letter {
            Letter::Store(loc, _) => *loc != store.0 && overtakes,
            _ => false,
        };
        let at = start + word[start..].iter().take_while(reached).count();
        let mut after = word.clone();
        if after[at] != Letter::Store(store.0, store.1) {
            return None;
        }
        after.remove(at);
        if overtakes && after[start] == Letter::Fence {
            after.remove(start);
        }
        Some(after)
    }

    /// All ways to leave out stores that are overwritten before the next fence.
    fn thinnings(word: &Word) -> BTreeSet<Word> {
        let mut all = BTreeSet::from([word.clone()]);
        for at in 0..word.len() {
            let Letter::Store(loc, _) = word[at] else { continue };
            let row = word[at + 1..].iter().take_while(|letter| matches!(letter, Letter::Store(..)));
            if row.into_iter().any(|letter| matches!(letter, Letter::Store(other, _) if *other == loc)) {
                all.extend(thinnings(&[&word[..at], &word[at + 1..]].concat()));
            }
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn commits_are_what_they_are_word_by_word(words in sets(), thread in 0_usize..2, loc in 0_u32..2, value in 0_i64..2) {
            let mut languages = Languages::new();
            let thread = ThreadId::new(thread);
            let store = languages.symbol(Loc(loc), value);
            let language = build(&mut languages, &words);
            let overtaken = words.iter().filter_map(|word| committed(word, thread, (Loc(loc), value), true)).collect();
            let expected = build(&mut languages, &overtaken);
            prop_assert_eq!(languages.after_overtaking(language, thread, store), expected);
            prop_assert!(overtaken.is_empty() || languages.overtaking(language, thread).contains(&store));
            let in_order = words.iter().filter_map(|word| committed(word, thread, (Loc(loc), value), false)).collect();
            let expected = build(&mut languages, &in_order);
            prop_assert_eq!(languages.after_commit(language, thread, store), expected);
            prop_assert_eq!(!in_order.is_empty(), languages.committable(language, thread).contains(&store));
        }

        #[test]
        fn stores_left_out_by_location_are_overwritten_before_the_next_fence(words in sets()) {
            let mut languages = Languages::new();
            let language = build(&mut languages, &words);
            let expected = words.iter().flat_map(thinnings).collect();
            let expected = build(&mut languages, &expected);
            let thinned = languages.thinned_by_location(language);
            prop_assert_eq!(thinned, expected);
            for word in words.iter().flat_map(thinnings) {
                let symbols: Vec<Symbol> = word.iter().map(|&letter| languages.symbol_of(letter)).collect();
                let (thick, kept) = languages.thickened_by_location(language, &symbols).unwrap();
                prop_assert!(languages.contains(language, &thick));
                let left: Vec<Symbol> = thick.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(s, _)| *s).collect();
                prop_assert_eq!(left, symbols);
            }
        }

        #[test]
        fn places_to_rest_are_counted_without_buffers(words in sets(), known in sets()) {
            let mut languages = Languages::new();
            let rest = |letter: &Letter| if let Letter::Rest(_, local) = letter { Some(*local) } else { None };
            let places = |words: &BTreeSet<Word>| -> BTreeSet<Box<[LocalId]>> {
                words.iter().map(|word| word.iter().filter_map(rest).collect()).collect()
            };
            let (expected, known_places) = (places(&words), places(&known));
            let (language, known) = (build(&mut languages, &words), build(&mut languages, &known));
            let (controls, known) = (languages.controls(language), languages.controls(known));
            prop_assert_eq!(languages.count(controls), expected.len() as u64);
            let listed: Vec<Box<[LocalId]>> = expected.iter().cloned().collect();
            prop_assert_eq!(languages.these_controls(&listed), controls);
            let beyond: BTreeSet<Box<[LocalId]>> =
                languages.words_beyond(known, controls, true, |_| true).into_iter().collect();
            prop_assert_eq!(&beyond, &expected.difference(&known_places).cloned().collect());
            let first = languages.words_beyond(known, controls, false, |_| true);
            prop_assert_eq!(first.len(), beyond.len().min(1));
        }

        #[test]
        fn widening_only_adds_and_keeps_where_threads_rest(words in sets(), depth in 0_usize..4) {
            let mut languages = Languages::new();
            let language = build(&mut languages, &words);
            let wider = languages.widened(language, depth);
            prop_assert!(languages.includes(wider, language));
            prop_assert_eq!(languages.controls(wider), languages.controls(language));
            let deeper = languages.widened(language, depth + 1);
            prop_assert!(languages.includes(wider, deeper));
        }
    }
}
