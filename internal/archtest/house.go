package archtest

// A Room is a package of the house: where it stands and what it may reach.
type Room struct {
	Path string // below internal/
	// Floor is 1 to 7; a package imports only what stands below it in House.
	Floor int
	// Third is what the package may import from other projects. It is held for
	// pure packages only: above the line docs/design/dependencies.md is enough.
	Third []string
	// Chance says that the package may draw from a seed that was passed in.
	Chance bool
}

// Line is the highest pure floor: values in, values out.
const Line = 4

// House is every package of internal, from the roof to the ground. The order is
// the rule: a package imports only packages that are named after it.
var House = []Room{
	{Path: "archtest", Floor: 7}, // reads the whole house, is read by nobody
	{Path: "docs", Floor: 7},     // holds the documents against the program, is read by nobody
	{Path: "cli", Floor: 7},
	{Path: "cli/jobs", Floor: 7},     // jobs run, seen, changed and ended
	{Path: "cli/plan", Floor: 7},     // what becomes of a job: plan, check
	{Path: "cli/estimate", Floor: 7}, // what a run needs
	{Path: "cli/simulate", Floor: 7}, // jobs on recorded markets
	{Path: "cli/offers", Floor: 7},   // what can be rented
	{Path: "cli/share", Floor: 7},    // users, tokens, limits
	{Path: "cli/learn", Floor: 7},    // what earlier runs have measured
	{Path: "cli/jobfile", Floor: 7},  // the job that a command names
	{Path: "cli/command", Floor: 7},  // what commands share
	{Path: "cli/show", Floor: 7},     // wire values as text for people
	{Path: "server", Floor: 7},
	{Path: "server/submit", Floor: 7},    // jobs taken in
	{Path: "server/jobs", Floor: 7},      // jobs shown, ended, paused, reviewed and changed
	{Path: "server/outbox", Floor: 7},    // what webhooks are told, at least once
	{Path: "server/forecast", Floor: 7},  // how likely jobs are done in time
	{Path: "server/agents", Floor: 7},    // what agents on machines ask
	{Path: "server/budgets", Floor: 7},   // limits, set and seen
	{Path: "server/books", Floor: 7},     // the log and its ledger, read for people
	{Path: "server/retention", Floor: 7}, // what jobs that are over have left, and how long
	{Path: "server/telemetry", Floor: 7}, // what machines were measured to do
	{Path: "server/workblob", Floor: 7},  // work folders that are put into buckets, where machines read them
	{Path: "server/kept", Floor: 7},      // checkpoints and outputs of jobs
	{Path: "server/workdir", Floor: 7},   // work folders that are copied or sent
	{Path: "server/people", Floor: 7},    // users, teams and tokens
	{Path: "server/openapi", Floor: 7},   // the description of the routes
	{Path: "server/auth", Floor: 7},      // who asks, and whether they may
	{Path: "server/front", Floor: 7},     // the address on the network
	{Path: "server/reply", Floor: 7},     // bodies, answers and problems
	{Path: "server/turn", Floor: 7},      // one after the other, by name
	{Path: "server/disk", Floor: 7},      // how much room there is
	{Path: "server/terms", Floor: 7},     // a job's file as the core's terms
	{Path: "server/secret", Floor: 7},    // values that the log never holds, sealed
	{Path: "server/webhook", Floor: 7},   // words to addresses that users name

	{Path: "control", Floor: 6},
	{Path: "sim", Floor: 6, Chance: true},
	{Path: "sim/replay", Floor: 6},
	{Path: "sim/tick", Floor: 6, Chance: true}, // the public benchmarks, tick by tick
	{Path: "agent", Floor: 6},
	{Path: "agent/save", Floor: 6},
	{Path: "agent/logship", Floor: 6},
	{Path: "agent/progress", Floor: 6},
	{Path: "agent/program", Floor: 6},
	{Path: "agent/meter", Floor: 6},
	{Path: "agent/notice", Floor: 6},
	{Path: "agent/setup", Floor: 6},
	{Path: "agent/wire", Floor: 6},

	{Path: "golden", Floor: 5},     // tests only: what is printed, held in files
	{Path: "foreign", Floor: 5},    // job files of other tools
	{Path: "scaffold", Floor: 5},   // a first job file from a look at the folder
	{Path: "marketfile", Floor: 5}, // markets as files
	{Path: "view", Floor: 5},       // what the log says, by job
	{Path: "store/storetest", Floor: 5},
	{Path: "store/pgtest", Floor: 5},
	{Path: "store/backup", Floor: 5},
	{Path: "store", Floor: 5},
	{Path: "engine/local", Floor: 5},
	{Path: "engine/ssh/sshtest", Floor: 5},     // tests only: machines with a real sshd
	{Path: "engine/ssh", Floor: 5},             // machines of one's own
	{Path: "engine/hostd", Floor: 5},           // what runs on such a machine and begins agents there
	{Path: "engine/procs", Floor: 5},           // processes of a machine that is a tree of them
	{Path: "engine/slurm/slurmtest", Floor: 5}, // tests only: real clusters
	{Path: "engine/aws", Floor: 5},             // machines of Amazon EC2
	{Path: "engine/kube/kubetest", Floor: 5},   // tests only: real clusters of Kubernetes
	{Path: "engine/aws/awstest", Floor: 5},     // tests only: a cloud that answers as EC2 does
	{Path: "engine/kube/image", Floor: 5},      // tests only: container images without a registry
	{Path: "engine/slurm", Floor: 5},           // a cluster, as an ordinary user of it
	{Path: "engine/kube", Floor: 5},            // a Kubernetes cluster, as an ordinary user of a namespace
	{Path: "engine/aws/answer", Floor: 5},      // long answers of EC2, decoded in less time than AWS' SDK needs
	{Path: "engine/aws/policy", Floor: 5},      // what a server may do in an account of AWS
	{Path: "engine/enginetest", Floor: 5},
	{Path: "engine", Floor: 5},
	{Path: "feed", Floor: 5},
	{Path: "checkpoint", Floor: 5},
	{Path: "blob/httpblob", Floor: 5}, // a server's store, and the way to it
	{Path: "blob/blobtest", Floor: 5},
	{Path: "blob", Floor: 5},
	{Path: "blob/lent", Floor: 5},   // which prefix of a bucket is a job's, and credentials for it
	{Path: "tarball", Floor: 5},     // a folder as one stream
	{Path: "awshttp", Floor: 5},     // the HTTP client of AWS' SDK
	{Path: "fileid", Floor: 5},      // tells a file from its copies
	{Path: "durable", Floor: 5},     // small files that are there as a whole
	{Path: "confined", Floor: 5},    // folders of programs, read without being led out of them
	{Path: "child", Floor: 5},       // programs that the server calls, without its passwords
	{Path: "isolate", Floor: 5},     // a panic that ends one task, and no process
	{Path: "wait", Floor: 5},        // a pause that ends early
	{Path: "api/convert", Floor: 5}, // values of the program to values of the wire
	{Path: "api/bound", Floor: 5},   // how much each field of a request may hold
	{Path: "api", Floor: 5},
	{Path: "api/signed", Floor: 5}, // requests that carry a machine's signature

	{Path: "await", Floor: 5},         // tests only: they wait for conditions
	{Path: "test/testbin", Floor: 5},  // tests only: the programs that tests run
	{Path: "test/port", Floor: 5},     // tests only: ports that nobody else gets
	{Path: "test/fast", Floor: 5},     // tests only: folders in memory
	{Path: "test/proc", Floor: 5},     // tests only: programs that end with their test
	{Path: "test/sameseed", Floor: 5}, // tests only: properties that draw the same cases in every commit
	{Path: "test/lane", Floor: 5},     // tests only: which lane a test belongs to

	{Path: "receipt", Floor: 4},
	{Path: "measured", Floor: 4}, // what finished runs say of the next
	{Path: "core", Floor: 4},
	// what is, and Apply, its only writer
	{Path: "state", Floor: 4, Third: []string{"github.com/go-json-experiment/json"}},

	{Path: "plan", Floor: 3},
	{Path: "plan/round", Floor: 3}, // the second decider: who gets what is paid for
	{Path: "rank", Floor: 3},       // plans over the catalogue: what is cheapest in time

	{Path: "policy/place", Floor: 2}, // in which zone
	{Path: "policy/warm", Floor: 2},  // how long a machine waits for the next job
	{Path: "policy", Floor: 2},
	{Path: "policy/horizon", Floor: 2}, // wait, spot or on-demand: the deadline policy
	{Path: "pack", Floor: 2},
	{Path: "estimate/modelfile", Floor: 2}, // shapes from config.json, ONNX, a line
	{Path: "estimate", Floor: 2},
	{Path: "estimate/shape", Floor: 2},    // models: what their cost depends on
	{Path: "estimate/likeness", Floor: 2}, // a correction learned from runs that are alike
	{Path: "tune", Floor: 2, Chance: true},
	{Path: "budget", Floor: 2},
	{Path: "anomaly", Floor: 2},
	{Path: "ledger", Floor: 2},
	{Path: "check", Floor: 2},
	{Path: "draw", Floor: 2},
	{Path: "telemetry", Floor: 2}, // what machines are measured to do, over time

	{Path: "catalog", Floor: 1},
	{Path: "market", Floor: 1, Chance: true},
	{Path: "spec", Floor: 1, Third: []string{"gopkg.in/yaml.v3"}},
	// how a command divides its run
	{Path: "launcher", Floor: 1, Third: []string{"gopkg.in/yaml.v3"}},
	// who may do what, and the one way to write names
	{Path: "identity", Floor: 1, Third: []string{"golang.org/x/text/unicode/norm"}},
	{Path: "ignore", Floor: 1},
	// the word that somebody may have meant
	{Path: "nearest", Floor: 1},
	{Path: "quantity", Floor: 1}, // how large numbers may be, and arithmetic without overflow
	{Path: "money", Floor: 1},
	{Path: "size", Floor: 1},
}

// publics are the packages that programs of others import, and what of ours each may import.
var publics = map[string][]string{
	"client": {Module + "/money"},
	"money":  {},
}

// outside is what a pure package must not import, and why. A name stands for
// all that lies below it too.
var outside = map[string]string{
	"context":       "nothing below the line waits, so nothing can be cancelled",
	"crypto/rand":   "chance is drawn from a seed that was passed in",
	"database/sql":  "what happened comes in as events",
	"io/ioutil":     "it reads no file",
	"log":           "a decision says why in its value, it does not log",
	"math/rand":     "chance is drawn from math/rand/v2 with a seed that was passed in",
	"net":           "it talks to nobody",
	"os":            "it reads no file, no variable, and starts no program",
	"path/filepath": "it knows no machine's file system: take package path",
	"plugin":        "it loads nothing",
	"runtime":       "it is the same on every machine",
	"sync":          "it is single-threaded, so there is nothing to lock",
	"syscall":       "it asks no kernel",
	"testing":       "tests are in files of their own",
	"unsafe":        "values are what their types say",
}

// clocks are the functions of package time that ask a machine.
var clocks = []string{"After", "AfterFunc", "LoadLocation", "NewTicker", "NewTimer", "Now", "Since", "Sleep",
	"Tick", "Until"}

// clouds are the modules that `make demo` must not compile: files that import
// them carry the constraint !local.
var clouds = []string{
	"cloud.google.com/go", "github.com/Azure", "github.com/aws", "gocloud.dev/aws", "gocloud.dev/azure",
	"gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob", "gocloud.dev/blob/s3blob", "gocloud.dev/gcp",
	"github.com/jackc/pgx", "k8s.io",
}
