//! The suites.

/// Which version of loom a suite asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoomVersion {
    /// 0.7
    Seven,
    /// 0.6
    Six,
    /// 0.5
    Five,
}

/// A published crate with tests for loom.
#[derive(Debug)]
pub struct Suite {
    /// The crate.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The `--cfg` that turns loom on, if one does.
    pub cfg: Option<&'static str>,
    /// What else it asks of the compiler, as in `RUSTFLAGS`.
    pub flags: &'static str,
    /// Variables that its own runs set.
    pub environment: &'static [(&'static str, &'static str)],
    /// Its features.
    pub features: &'static str,
    /// Are its default features among them?
    pub default_features: bool,
    /// Which targets are tested.
    pub targets: &'static [&'static str],
    /// Only tests whose name contains this: the others are not for loom.
    pub filter: &'static str,
    /// The loom it was written for.
    pub loom: LoomVersion,
    /// Does it refuse to be built without optimisation?
    pub release: bool,
    /// Does the project promise to run it?
    pub promised: bool,
    /// Tests that fail because the crate makes a mistake; docs/crates.md tells which.
    pub mistaken: &'static [&'static str],
}

impl Suite {
    /// A crate whose tests need nothing but `--cfg loom` and these targets.
    pub const fn new(name: &'static str, version: &'static str, targets: &'static [&'static str]) -> Self {
        Self {
            name,
            version,
            cfg: Some("loom"),
            flags: "",
            environment: &[],
            features: "",
            default_features: true,
            targets,
            filter: "",
            loom: LoomVersion::Seven,
            release: false,
            promised: false,
            mistaken: &[],
        }
    }

    const fn cfg(self, cfg: Option<&'static str>) -> Self {
        Self { cfg, ..self }
    }

    const fn flags(self, flags: &'static str) -> Self {
        Self { flags, ..self }
    }

    const fn environment(self, environment: &'static [(&'static str, &'static str)]) -> Self {
        Self { environment, ..self }
    }

    const fn features(self, features: &'static str) -> Self {
        Self { features, ..self }
    }

    const fn no_default_features(self) -> Self {
        Self { default_features: false, ..self }
    }

    const fn filter(self, filter: &'static str) -> Self {
        Self { filter, ..self }
    }

    const fn loom_0_5(self) -> Self {
        Self { loom: LoomVersion::Five, ..self }
    }

    const fn loom_0_6(self) -> Self {
        Self { loom: LoomVersion::Six, ..self }
    }

    const fn release(self) -> Self {
        Self { release: true, ..self }
    }

    const fn promised(self) -> Self {
        Self { promised: true, ..self }
    }

    const fn mistaken(self, mistaken: &'static [&'static str]) -> Self {
        Self { mistaken, ..self }
    }

    /// Does a test fail because the crate makes a mistake?
    pub fn is_mistaken(&self, test: &str) -> bool {
        self.mistaken.iter().any(|name| test == *name || test.ends_with(&format!("::{name}")))
    }

    /// `RUSTFLAGS`.
    pub fn rustflags(&self) -> String {
        let cfg = self.cfg.map(|cfg| format!("--cfg {cfg}"));
        let words: Vec<_> =
            cfg.iter().map(String::as_str).chain([self.flags]).filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }
}

const LIB: &[&str] = &["--lib"];
const LOOM: &[&str] = &["--test", "loom"];

/// All suites, the promised ones first.
pub const SUITES: &[Suite] = &[
    Suite::new("boxcar", "0.2.14", &["--test", "loom", "--test", "loom_buckets"]).features("loom").promised(),
    Suite::new("left-right", "0.11.8", LOOM).promised(),
    Suite::new("parking", "2.2.1", LOOM).features("loom").promised(),
    Suite::new("concurrent-queue", "2.5.0", LOOM).features("loom").promised(),
    Suite::new("oneshot", "0.2.1", LOOM)
        .cfg(Some("oneshot_loom"))
        .features("loom,std,async")
        .promised()
        .mistaken(&["poll_then_drop_receiver_during_send"]),
    Suite::new("cordyceps", "0.3.5", LIB).promised(),
    Suite::new("crossbeam-epoch", "0.9.21", LOOM).cfg(Some("crossbeam_loom")).features("loom").promised(),
    Suite::new("st3", "0.4.1", &["--test", "integration"]).cfg(Some("st3_loom")).loom_0_5().promised(),
    Suite::new("active_standby", "2.0.0", LOOM).loom_0_5(),
    Suite::new("actor-kit", "0.2.7", LIB).filter("loom"),
    Suite::new("affinitypool", "0.8.0", &["--test", "loom_queue"]),
    Suite::new("aiq", "0.1.0-alpha.6", &["--test", "loom_notify", "--test", "loom_semaphore"]),
    Suite::new("arcshift", "0.4.10", LIB).features("loom"),
    Suite::new("arcstr", "1.2.0", LIB),
    Suite::new("arena-alligator", "0.7.0", LIB).filter("loom"),
    Suite::new("artmap", "0.8.0", LIB).filter("loom_tests"),
    Suite::new("async_cell", "0.2.3", &["--test", "cell"]),
    Suite::new("async-event", "0.2.1", LIB).cfg(Some("async_event_loom")).loom_0_5(),
    Suite::new("async-lock", "3.5.0", LOOM).features("loom"),
    Suite::new("asynchronix", "0.2.4", LIB).cfg(Some("asynchronix_loom")).filter("loom").loom_0_5(),
    Suite::new("atomic_once_cell", "0.2.0", LIB),
    Suite::new("atomic-slot", "0.1.0", LOOM),
    Suite::new("atomx", "0.2.10", LOOM).loom_0_5(),
    Suite::new("awkernel_sync", "0.1.1", &["--test", "model_check_mcslock", "--test", "model_check_rwlock"])
        .features("std")
        .mistaken(&["model_check_rwlock"]),
    Suite::new("blazemap", "0.5.1", LOOM).flags("-C debug-assertions").features("loom").release(),
    Suite::new("blinkcast", "0.2.0", LIB),
    Suite::new("breaker", "2.0.2", LOOM),
    Suite::new("budget-context", "0.2.0", &["--test", "loom_model"]).cfg(Some("budget_context_loom")),
    Suite::new("burstq", "0.2.0", LIB),
    Suite::new("bytes", "1.12.1", LIB),
    Suite::new("cachelog", "0.2.1", &["--test", "loom", "--test", "loom_exhaustive"]).cfg(None).features("loom"),
    Suite::new("char_str", "0.0.4", LOOM).features("loom"),
    Suite::new("clhlock", "0.2.2", LIB).filter("model"),
    Suite::new("clock-lib", "1.1.0", LIB).filter("loom"),
    Suite::new("cold-string", "0.5.0", LIB).filter("loom"),
    Suite::new("compact-waitgroup", "0.3.7", LIB).filter("loom"),
    Suite::new("compio-executor", "0.1.4", LOOM),
    Suite::new("diatomic-waker", "0.2.3", LIB).cfg(Some("diatomic_waker_loom")),
    Suite::new("doublebuf", "0.2.0", LOOM),
    Suite::new("dumpster", "2.1.0", LIB).filter("loom"),
    Suite::new("ecow", "0.3.1", LOOM).features("loom").release(),
    Suite::new("emdb", "1.0.3", LIB).filter("loom_"),
    Suite::new("event-listener", "5.4.2", LOOM).features("loom"),
    Suite::new("fanring", "0.3.6", LIB).filter("loom"),
    Suite::new("ferntree", "0.7.0", &["--test", "loom_tests"]).features("loom"),
    Suite::new("fgumi-sort", "0.9.0", &["--test", "loom_merge_slots"]),
    Suite::new("flashmap", "0.2.0", LOOM).features("loom"),
    Suite::new("gatehouse", "0.6.0", LIB).filter("loom"),
    Suite::new("gil", "0.9.0", LIB).cfg(None).no_default_features().features("loom"),
    Suite::new("haphazard", "0.1.8", LOOM),
    Suite::new("hipstr", "0.8.0", LIB).filter("loom"),
    Suite::new("horton", "0.19.0", &["--test", "loom_ring"]).cfg(Some("horton_loom")).features("multiwriter"),
    Suite::new("icmsg", "0.1.0", LIB).filter("loom"),
    Suite::new("idr-ebr", "0.3.3", LOOM).cfg(Some("idr_ebr_loom")).features("loom"),
    Suite::new("interchange", "0.3.3", LOOM).loom_0_5(),
    Suite::new("kasino", "0.3.0", LIB).filter("loom"),
    Suite::new("kevy-ring", "7.0.0", LOOM),
    Suite::new("kevy-rt", "7.0.0", LOOM),
    Suite::new("kio", "0.6.3", LIB).filter("loom"),
    Suite::new("kip", "0.1.1", &["--test", "loom_models"]),
    Suite::new("lean_string", "0.8.0", LOOM).features("loom"),
    // It denies warnings, and compilers have learned to warn of `cfg(loom)` since.
    Suite::new("lf-queue", "0.1.0", &["--test", "loom_queue"]).flags("--cap-lints warn").loom_0_5(),
    Suite::new("lite-sync", "0.3.0", &["--tests"]).cfg(None).features("loom"),
    Suite::new("lock-db", "1.0.0", LOOM),
    Suite::new("lock_pool", "0.2.0", LOOM),
    Suite::new("maillon", "0.1.0", &["--tests"]),
    Suite::new("maitake-sync", "0.3.0", LIB),
    Suite::new("masstree", "0.9.5", LIB).filter("loom"),
    Suite::new("mcslock", "0.4.2", LIB).features("thread_local,barging").filter("model"),
    Suite::new("metadata-gen", "0.0.9", &["--test", "loom_smoke"]),
    Suite::new(
        "mnemosyne-memory-core",
        "0.3.0",
        &["--test", "loom_atomic_free_list", "--test", "loom_segment_ownership"],
    ),
    Suite::new("mod-events", "1.1.0", &["--test", "loom_concurrent"]),
    Suite::new("moirai-core", "0.11.3", &["--test", "loom_mpmc_waiter", "--test", "loom_spsc_ring"]),
    Suite::new(
        "moirai-executor",
        "0.11.3",
        &[
            "--test",
            "loom_join_quiescence",
            "--test",
            "loom_lifo_slot",
            "--test",
            "loom_queue_handoff",
            "--test",
            "loom_scope_completion",
            "--test",
            "loom_shutdown_admission",
            "--test",
            "loom_task_waiters",
            "--test",
            "loom_wake_handshake",
        ],
    ),
    Suite::new(
        "moirai-scheduler",
        "0.11.3",
        &["--test", "loom_chase_lev", "--test", "loom_chase_lev_resize_gate", "--test", "loom_chase_lev_slot_claim"],
    ),
    Suite::new("moka", "0.12.16", LIB).cfg(Some("moka_loom")).features("sync").filter("loom"),
    Suite::new("mpmc-resize", "0.1.4", LIB).filter("loom"),
    Suite::new("multishot", "0.3.2", LIB).cfg(Some("multishot_loom")).loom_0_5(),
    Suite::new("multitude", "0.1.3", LOOM),
    Suite::new("nblf-queue", "0.3.0", LIB).filter("loom"),
    Suite::new("neocache", "1.0.0", LOOM),
    Suite::new("nexosim", "1.0.0", LIB).cfg(Some("nexosim_loom")).filter("loom"),
    Suite::new("nexus-notify", "1.1.0", &["--test", "loom_event_queue"]),
    Suite::new("nolock", "0.4.1", LIB).filter("loom").loom_0_5(),
    Suite::new("notify-future", "0.2.6", LIB).cfg(None),
    Suite::new("nure-queue", "0.1.0", LOOM).cfg(None).features("loom"),
    Suite::new("once_cell_no_std", "0.2.1", LIB),
    Suite::new("once-ptr-cell", "0.1.0", &["--test", "loom_once_ptr_cell"]),
    Suite::new("omq-proto", "0.37.0", &["--test", "omq_proto_loom_dart"]).features("dart"),
    Suite::new("page-db", "1.0.0", LIB).filter("loom"),
    Suite::new("parcoll", "1.4.2", &["--test", "loom_tests"]).cfg(Some("parcoll_loom")).features("always_steal"),
    Suite::new(
        "parkring",
        "1.0.0",
        &["--lib", "--test", "loom", "--test", "loom_scq", "--test", "loom_pool", "--test", "loom_channel"],
    ),
    Suite::new("parity-db", "0.5.7", LOOM).cfg(None).features("loom,instrumentation"),
    Suite::new("per-thread-object", "0.6.1", &["--test", "threadlocal"]).cfg(None).features("loom"),
    Suite::new("percentile-kit", "1.0.0", LOOM).cfg(None).features("loom"),
    Suite::new("persistent-queue", "0.2.0", LOOM),
    Suite::new("photon-ring", "3.0.0", &["--test", "loom_backpressure", "--test", "loom_mpmc"]),
    Suite::new("polymock", "0.2.2", LIB).loom_0_5(),
    Suite::new("pragma_sync", "1.0.0", LOOM),
    Suite::new("ps-reclaim", "0.1.5", &["--test", "loom_model", "--test", "loom_protocol"])
        .cfg(Some("ps_loom"))
        .mistaken(&["registration_repin_and_two_reclaimers"]),
    Suite::new("ptab", "0.1.7", &["--test", "model"]).features("loom"),
    Suite::new("qubit-batch", "0.14.3", LIB).features("loom-tests").filter("loom"),
    Suite::new("qubit-clock", "0.13.4", &["--tests"]).features("loom-model").filter("loom"),
    Suite::new("qubit-lock", "0.14.4", &["--tests"]).features("loom-model").filter("loom"),
    Suite::new("qubit-progress", "0.9.2", LIB).filter("loom"),
    Suite::new("qubit-thread-pool", "0.12.1", LIB).features("loom-model").filter("loom"),
    Suite::new("rapidfire", "0.2.0", &["--test", "loom", "--test", "mpsc_loom"]).features("loom"),
    Suite::new("rarena-allocator", "0.6.0", LIB).cfg(None).features("loom"),
    Suite::new("rc_event_queue", "0.4.3", LIB).filter("loom").loom_0_5(),
    Suite::new("read-copy-update", "0.1.0", LIB).loom_0_5(),
    Suite::new("real-time", "0.8.0", LOOM),
    Suite::new(
        "reef-core",
        "0.4.0",
        &["--test", "loom_agent_close", "--test", "loom_delivery", "--test", "loom_transcript"],
    ),
    Suite::new("ref_count", "0.1.2", &["--test", "loom", "--test", "queue_loom"]).mistaken(&["writers"]),
    Suite::new("relay_channel", "0.1.2", LIB).filter("loom"),
    Suite::new("rendezvous", "0.5.0", LOOM).cfg(Some("rendezvous_loom")),
    Suite::new("renege", "0.3.1", LIB).filter("loom"),
    Suite::new("ring_mpsc", "0.3.1", &["--tests"]),
    Suite::new("ring_spsc", "0.3.1", &["--tests"]),
    Suite::new("rivet-rtos", "0.2.0", LOOM).features("loom,test-support"),
    Suite::new("rlg", "0.0.16", &["--test", "loom_engine"]),
    Suite::new("rt-ring", "0.2.0", LIB),
    Suite::new("rtic-sync", "1.6.0", LIB),
    Suite::new("rust-tango", "0.1.2", LOOM).cfg(None).features("loom"),
    Suite::new("s2n-quic-core", "0.91.0", LIB).features("testing").filter("loom"),
    Suite::new("saa", "5.6.2", LIB).cfg(None).features("loom").filter("models"),
    Suite::new("scc", "3.8.8", LIB).cfg(None).features("loom").filter("models"),
    Suite::new("sdd", "4.8.11", LIB).cfg(None).features("loom").filter("models"),
    Suite::new(
        "sefer-alloc",
        "0.2.1",
        &[
            "--test",
            "loom_bootstrap_cas",
            "--test",
            "loom_epoch",
            "--test",
            "loom_registry",
            "--test",
            "loom_remote_ring",
            "--test",
            "loom_sharded",
            "--test",
            "loom_thread_free",
            "--test",
            "loom_xthread_protocol",
        ],
    ),
    Suite::new("segcache", "0.4.4", LIB).cfg(None).features("loom").filter("loom"),
    Suite::new("segment-buffer", "0.6.0", LOOM).features("loom"),
    Suite::new("sharded-slab", "0.1.7", LIB).features("loom").loom_0_5(),
    Suite::new("shared-state", "0.1.3", LIB).filter("loom"),
    Suite::new("shm-primitives", "7.3.0", LIB).filter("loom"),
    Suite::new("shm-rings", "1.0.0", LOOM).cfg(None).features("loom"),
    Suite::new("slab-pool", "0.1.1", LOOM).cfg(None).features("loom"),
    Suite::new("smallring", "0.2.3", &["--test", "loom_generic", "--test", "loom_spsc", "--test", "loom_atomic"])
        .cfg(None)
        .features("loom"),
    Suite::new("snowflake_me", "2.2.0", &["--test", "loom_test"]),
    Suite::new("snowflaked", "1.0.4", LIB).features("sync"),
    Suite::new("sparking-lot-core", "0.1.3", LOOM).features("loom-test"),
    Suite::new("spinny", "0.2.4", LIB).loom_0_5(),
    Suite::new("splitrc", "0.1.12", LOOM),
    Suite::new("spmc-waker", "0.2.2", &["--test", "spmc_waker"]),
    Suite::new("spsc-ring", "0.1.0", LIB).filter("loom"),
    Suite::new("stack-queue", "0.15.0", LIB),
    Suite::new("state", "0.6.0", LOOM).loom_0_5(),
    Suite::new("stele", "0.3.5", LIB).loom_0_5(),
    Suite::new("surrealmx", "1.1.0", LIB).filter("loom"),
    Suite::new("swap-buffer-queue", "0.2.1", LIB),
    Suite::new("swap-queue", "1.1.0", LIB).loom_0_5(),
    Suite::new("swmr-barrier", "0.1.4", &["--test", "loom_test"]).features("loom"),
    Suite::new("swmr-epoch", "0.3.12", &["--test", "loom_tests"]).features("loom"),
    Suite::new("sync-oneshot", "0.2.1", &["--tests"]),
    Suite::new("synctools", "0.3.3", &["--test", "test_mcslock", "--test", "test_rwlock"]).mistaken(&["test_rwlock"]),
    Suite::new("syndrome", "0.6.1", &["--test", "loom_spsc"]),
    Suite::new("tachyonix", "0.3.1", LIB).cfg(Some("tachyonix_loom")),
    Suite::new("tagged-index-stack", "0.1.0", &["--test", "loom_aba"]).features("loom"),
    // Without debug assertions it does not compile, whoever plays loom.
    Suite::new("thingbuf", "0.1.6", LIB).flags("-C debug-assertions").loom_0_5(),
    Suite::new("tokio", "1.54.1", LIB)
        .flags("--cfg tokio_unstable -C debug-assertions")
        .features("full,test-util")
        .environment(&[("LOOM_MAX_PREEMPTIONS", "2"), ("LOOM_MAX_BRANCHES", "10000")])
        .release(),
    Suite::new("tokio-graceful", "0.2.2", LIB).filter("loom"),
    Suite::new("tokio-util", "0.7.20", LIB).features("full").filter("loom"),
    Suite::new("txn-db", "1.0.1", &["--test", "loom_txn"]),
    Suite::new("ultima_rings", "0.3.0", LOOM),
    Suite::new("waitfree-sync", "0.4.1", &["--test", "miri"]),
    Suite::new("waitx", "0.4.3", LIB).cfg(None).features("loom"),
    Suite::new("wal-db", "1.1.0", &["--test", "loom_wal"]),
    Suite::new("wcq", "0.1.0", LIB),
    Suite::new("weakref", "0.2.2", LIB).filter("loom"),
    Suite::new("wf_alloc", "0.1.2", &["--test", "loom_models"]).cfg(None).features("loom"),
    Suite::new("wide-log", "0.8.1", LIB).filter("loom"),
    Suite::new("work-queue", "0.1.4", LIB).loom_0_6(),
    Suite::new("y-octo", "0.1.1", LIB),
    Suite::new("yring", "0.3.17", LOOM).features("async"),
];
