//! How long it takes to read a litmus test, text to program.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use weakspot_front::litmus;
use weakspot_model::source::SourceFile;

const STORE_BUFFERING: &str = "X86 SB+bench
\"store buffering, as generators write it\"
Cycle=Fre PodWR Fre PodWR
Generator=none
Com=Fr Fr
{
}
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MFENCE      |             ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

const LOCKED: &str = "X86 locked+bench
{ l=0; x=0; 0:ECX=1; 1:ECX=2; }
 P0                   | P1                   | P2          ;
 LOCK CMPXCHG [l],ECX | LOCK CMPXCHG [l],ECX | MOV EAX,[x] ;
 JNE out              | JNE out              | MOV EBX,[l] ;
 INC [x]              | INC [x]              |             ;
 XCHG [l],EDX         | XCHG [l],EDX         |             ;
 out:                 | out:                 |             ;
forall (x=0 \\/ x=1 /\\ (0:EAX=0 \\/ 1:EAX=0) \\/ x=2 /\\ 2:EAX=1 /\\ 2:EBX=0 \\/ x=2)
";

fn read(criterion: &mut Criterion) {
    for (name, text) in [("store buffering", STORE_BUFFERING), ("locked, three threads", LOCKED)] {
        let source = SourceFile::new(name, text);
        assert!(litmus::parse(&source).is_ok(), "{name}");
        criterion.bench_function(&format!("read litmus: {name}"), |bencher| {
            bencher.iter(|| litmus::parse(black_box(&source)).unwrap());
        });
        criterion.bench_function(&format!("read litmus, file included: {name}"), |bencher| {
            bencher.iter(|| litmus::parse(&SourceFile::new(name, black_box(text))).unwrap());
        });
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
