package slurm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// record is what is known of a request. It is stored in the shared folder before Slurm hears of the request, so that
// a restarted or another server finds the result.
type record struct {
	order.Order
	Name string `json:"name"` // of its job and its folder

	Job       string    `json:"job,omitempty"`      // Slurm's number; empty: unknown
	Submitted time.Time `json:"submitted,omitzero"` // when Slurm had answered, or was about to be contacted
	Cancelled bool      `json:"cancelled,omitempty"`
	Start     time.Time `json:"start,omitzero"` // Slurm's time; zero: not started
	Seen      time.Time `json:"seen,omitzero"`  // when it was last seen running, to about a minute
	State     string    `json:"state,omitempty"`
	End       time.Time `json:"end,omitzero"` // Slurm's time; zero: not ended
	Told      time.Time `json:"told,omitzero"`
	Given     []int     `json:"given,omitempty"` // terminated ranks
	Ends      []rankEnd `json:"ends,omitempty"`  // of the ended ranks
	Closed    bool      `json:"closed,omitempty"`

	reason   string    // Slurm's reason for the wait
	expected time.Time // Slurm's expected start
	missing  time.Time // since when Slurm has not known it
	tried    time.Time // last attempt to end the terminated machines
}

// rankEnd is the end of one machine of an allocation.
type rankEnd struct {
	Rank  int          `json:"rank"`
	At    time.Time    `json:"at"`
	Cause engine.Cause `json:"cause"`
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf returns the unique name of a key's job.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	plain := notPlain.ReplaceAllString(key, "-")
	return scheduler.NamePrefix + plain[:min(len(plain), 80)] + "-" + hex.EncodeToString(sum[:4])
}

// commentPrefix begins the comments of scrimp's jobs.
const commentPrefix = "scrimp:"

// longestComment is Slurm's limit in bytes; it refuses a job with a longer comment.
const longestComment = 1024

// comment describes a job to a server that does not know it. It leaves out tags without room; scrimp's own tags,
// which name the job's owner, come first.
func (r *record) comment() string {
	v := url.Values{"key": {r.Key}, "offer": {string(r.Offer)}, "rate": {strconv.FormatInt(int64(r.Rate), 10)},
		"currency": {string(r.Currency)}, "nodes": {strconv.Itoa(r.Nodes)}}
	names := slices.SortedFunc(maps.Keys(r.Tags), func(a, b string) int {
		ours := strings.HasPrefix(a, scheduler.NamePrefix)
		if ours != strings.HasPrefix(b, scheduler.NamePrefix) {
			return map[bool]int{true: -1, false: 1}[ours]
		}
		return strings.Compare(a, b)
	})
	text := commentPrefix + v.Encode()
	for _, name := range names {
		if v.Set("tag."+name, r.Tags[name]); len(commentPrefix)+len(v.Encode()) > longestComment {
			v.Del("tag." + name)
			continue
		}
		text = commentPrefix + v.Encode()
	}
	return text
}

// recordOf parses a job's comment.
func recordOf(j *scheduler.Job) (*record, bool) {
	text, ok := strings.CutPrefix(j.Comment, commentPrefix)
	v, err := url.ParseQuery(text)
	nodes := 1
	if n := v.Get("nodes"); n != "" {
		nodes, _ = strconv.Atoi(n)
	}
	if !ok || err != nil || v.Get("key") == "" || !plausible(nodes) {
		return nil, false
	}
	rate, _ := strconv.ParseInt(v.Get("rate"), 10, 64)
	r := &record{Order: order.Order{Key: v.Get("key"), Offer: market.OfferID(v.Get("offer")), Nodes: nodes,
		Rate: money.Rate(rate), Priced: rate > 0, Currency: money.Currency(v.Get("currency")), Tags: map[string]string{}},
		Name: j.Name, Job: j.ID}
	for name := range v {
		if tag, ok := strings.CutPrefix(name, "tag."); ok {
			r.Tags[tag] = v.Get(name)
		}
	}
	return r, true
}

// plausible reports whether a request can have so many machines. Any program of the server's user may write a comment
// or a record, and each machine in it takes memory.
func plausible(nodes int) bool { return nodes >= 1 && nodes <= int(quantity.Nodes.Most) }

// ours parses the comment of a job of this engine. Another engine may use the same cluster as the same user.
func (d *Driver) ours(j *scheduler.Job) (*record, bool) {
	r, ok := recordOf(j)
	return r, ok && strings.HasPrefix(string(r.Offer), d.name+"/")
}

// id returns the id of a rank's machine.
func (d *Driver) id(r *record, rank int) string { return fmt.Sprintf("%s-%s-%d", d.name, r.Job, rank) }

// of parses a machine's id into its job and rank.
func (d *Driver) of(id string) (job string, rank int, ok bool) {
	rest, ok := strings.CutPrefix(id, d.name+"-")
	job, number, ok2 := strings.Cut(rest, "-")
	rank, err := strconv.Atoi(number)
	_, err2 := strconv.ParseUint(job, 10, 64)
	return job, rank, ok && ok2 && err == nil && err2 == nil && rank >= 0 && number == strconv.Itoa(rank)
}

// instances returns a request's machines by rank.
func (d *Driver) instances(r *record) []engine.Instance {
	if r.Start.IsZero() {
		return nil
	}
	list := make([]engine.Instance, r.Nodes)
	for k := range list {
		i := r.Instance(d.id(r, k), r.Start)
		if e := r.ended(k); e != nil {
			i.State, i.Ended, i.Cause, i.Bill = engine.Ended, e.At, e.Cause, r.bill(e)
			if e.Cause == engine.Interrupted && !r.Told.IsZero() && r.Told.Before(e.At) {
				i.Notice = e.At.Sub(r.Told)
			}
		}
		list[k] = i
	}
	return list
}

func (r *record) ended(rank int) *rankEnd {
	for n := range r.Ends {
		if r.Ends[n].Rank == rank {
			return &r.Ends[n]
		}
	}
	return nil
}

// bill returns the cost of an allocation's machine: its own time and, if the rest of its gang kept the allocation for
// longer, the time that Slurm kept its node for. A machine without a price has no bill.
func (r *record) bill(e *rankEnd) []engine.Line {
	lines := r.Bill(r.Start, e.At)
	if len(lines) > 0 && r.End.After(e.At) {
		whole := r.Rate.Until(r.End.Sub(r.Start))
		lines = append(lines, engine.Line{Rule: "allocation", From: e.At, To: r.End, Amount: whole.Sub(lines[0].Amount),
			Currency: r.Currency})
	}
	return lines
}

// folder is the place of a request's record and of its allocation's files.
func (d *Driver) folder(name string) string { return filepath.Join(d.shared, "requests", name) }

// keep makes a record durable.
func (d *Driver) keep(r *record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.folder(r.Name), 0o700); err != nil {
		return fmt.Errorf("keep the record of %s: %w", r.Key, err)
	}
	if err := durable.Replace(filepath.Join(d.folder(r.Name), "record.json"), b); err != nil {
		return fmt.Errorf("keep the record of %s: %w", r.Key, err)
	}
	return nil
}

// maxFile bounds the bytes read from a file that an allocation may have written: a record of 1,000 machines has a
// tenth.
const maxFile = 4 << 20

// readFile reads a file of a request's folder. Programs of the server's user may write there, so it reads only
// regular files and never waits for a pipe.
func readFile(path string) ([]byte, error) {
	return confined.ReadFile(path, maxFile)
}

// read reads a record; nil if there is none.
func (d *Driver) read(name string) (*record, error) {
	b, err := readFile(filepath.Join(d.folder(name), "record.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err == nil && (r.Name != name || nameOf(r.Key) != name || !plausible(r.Nodes)) {
		err = fmt.Errorf("it is the record of %q with %d machines", r.Name, r.Nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record %s: %w", name, err)
	}
	return &r, nil
}

// keepFor is how long ended requests are remembered.
const keepFor = 14 * 24 * time.Hour

// load reads all records, and deletes those that ended long ago.
func (d *Driver) load() error {
	entries, err := os.ReadDir(filepath.Join(d.shared, "requests"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the engine's records: %w", err)
	}
	for _, e := range entries {
		r, err := d.read(e.Name())
		switch {
		case err != nil: // the comment of its Slurm job counts
			d.log.Error("skipped an unreadable record: remove it once its job has ended", "error", err)
		case r == nil: // its server died before it contacted Slurm
		case r.Closed && !r.End.IsZero() && time.Since(r.End) > keepFor:
			if err := os.RemoveAll(d.folder(r.Name)); err != nil {
				d.log.Warn("an old record stays", "record", r.Name, "error", err)
			}
		default:
			d.records[r.Key] = r
		}
	}
	return nil
}
