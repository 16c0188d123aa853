package archtest

import "slices"

// A Folder of internal contains packages on the same layer.
type Folder struct {
	Name string
	// Pure requires that its packages only map values to values, except those in notPure.
	Pure bool
}

// House lists the folders of internal from top to bottom, in import order: a package may import packages of its own
// folder and of later folders. The compiler refuses cycles within a folder.
var House = []Folder{
	{Name: "test"},    // test suites and emulators, and these rules
	{Name: "cli"},     // the commands, and text for people
	{Name: "server"},  // the HTTP API and its pages
	{Name: "agent"},   // the daemon on a machine
	{Name: "control"}, // drives the core live
	{Name: "sim"},     // drives the core in virtual time
	{Name: "view"},    // follows the log for pages and receipts
	{Name: "engine"},  // clouds, clusters and one's own machines
	{Name: "store"},   // the log and its snapshots
	{Name: "content"}, // checkpoints, outputs and work folders
	{Name: "decide", Pure: true},
	{Name: "work", Pure: true},     // what groups of jobs do next
	{Name: "job", Pure: true},      // the job file
	{Name: "estimate", Pure: true}, // memory, time and dollars of a run
	{Name: "market", Pure: true},   // offers and prices
	{Name: "wire", Pure: true},     // the protocol between agents and server
	{Name: "lib", Pure: true},      // small and general
}

// notPure lists the packages of pure folders that read files, wait or use the network.
var notPure = []string{
	"job/jobimport", "job/scaffold", "lib/awshttp", "lib/blockhash", "lib/child", "lib/confined", "lib/durable",
	"lib/fileid", "lib/inode", "lib/isolate", "lib/quiet", "lib/threadtime", "lib/wait", "lib/weburl",
	"market/feed", "market/marketfile", "wire/api", "wire/limits", "wire/httpsig", "wire/tunnel",
}

// seeded lists the packages that may use randomness from a seed that was passed in.
var seeded = []string{"market", "sim", "sim/tick", "sim/tick/multizone", "work/interval"}

// thirds lists the third-party packages that a pure package may import. For other packages,
// docs/design/dependencies.md is enough.
var thirds = map[string][]string{
	"decide/state":               {"github.com/go-json-experiment/json"},
	"job/jobimport/gpu":          {"go.yaml.in/yaml/v3"},
	"job/jobimport/node":         {"go.yaml.in/yaml/v3"},
	"job/launcher":               {"go.yaml.in/yaml/v3"},
	"job/spec":                   {"go.yaml.in/yaml/v3"},
	"work/pipelinefile":          {"go.yaml.in/yaml/v3"},
	"work/pipelinefile/document": {"go.yaml.in/yaml/v3"},
	"work/pipelinefile/trigger":  {"go.yaml.in/yaml/v3"},
	"work/schedule":              {"github.com/netresearch/go-cron"},
	"work/sheet":                 {"go.yaml.in/yaml/v3"},
	"work/studyfile":             {"go.yaml.in/yaml/v3"},
	"lib/identity":               {"golang.org/x/text/unicode/norm"},
}

// pure reports whether the package with the path below internal must be pure.
func pure(room string) bool {
	at := floor(House, room)
	return at >= 0 && House[at].Pure && !slices.Contains(notPure, room)
}

// publics lists the packages for other programs, and what each may import from this module.
var publics = map[string][]string{
	"client": {Module + "/money"},
	"money":  {},
}

// outside lists what a pure package must not import, with the reason. A name includes everything below it.
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

// clocks lists the functions of package time that use the system.
var clocks = []string{"After", "AfterFunc", "LoadLocation", "NewTicker", "NewTimer", "Now", "Since", "Sleep",
	"Tick", "Until"}

// calendar is the pure package that may load time zones: it embeds the database of zones, and the steps of the core
// do not call it.
const calendar = "work/schedule"

// clouds lists the modules, mostly of clouds, that `make demo` must not compile: files that import them have the
// constraint !local.
var clouds = []string{
	"cloud.google.com/go", "github.com/Azure", "github.com/aws", "gocloud.dev/aws", "gocloud.dev/azure",
	"gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob", "gocloud.dev/blob/s3blob", "gocloud.dev/gcp",
	"github.com/jackc/pgx", "github.com/parquet-go", "k8s.io",
}
