// Package record keeps what is known of each request to Slurm in the folder that the nodes share, and reads what its
// allocation writes there.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// Record is what is known of a request. It is stored in the shared folder before Slurm hears of the request, so that
// a restarted or another server finds the result.
type Record struct {
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
	Ends      []End     `json:"ends,omitempty"`  // of the ended ranks
	Closed    bool      `json:"closed,omitempty"`

	// The fields below exist only in this process; record.json does not contain them.

	Reason   string    `json:"-"` // Slurm's reason for the wait
	Expected time.Time `json:"-"` // Slurm's expected start
	Missing  time.Time `json:"-"` // since when Slurm has not known it
	Tried    time.Time `json:"-"` // last attempt to end the terminated machines
}

// Store is the folder in which an engine keeps the records of its requests and the files of their allocations. The
// nodes see it under the same path.
type Store struct {
	Engine string // its name
	Dir    string
}

// End is the end of one machine of an allocation.
type End struct {
	Rank  int          `json:"rank"`
	At    time.Time    `json:"at"`
	Cause engine.Cause `json:"cause"`
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NameOf returns the unique name of a key's job.
func NameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	plain := notPlain.ReplaceAllString(key, "-")
	return scheduler.NamePrefix + plain[:min(len(plain), 80)] + "-" + hex.EncodeToString(sum[:4])
}

// commentPrefix begins the comments of scrimp's jobs.
const commentPrefix = "scrimp:"

// longestComment is Slurm's limit in bytes; it refuses a job with a longer comment.
const longestComment = 1024

// Comment describes a job to a server that does not know it. It leaves out tags without room; scrimp's own tags,
// which name the job's owner, come first.
func (r *Record) Comment() string {
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

// Of parses a job's comment.
func Of(j *scheduler.Job) (*Record, bool) {
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
	r := &Record{Order: order.Order{Key: v.Get("key"), Offer: market.OfferID(v.Get("offer")), Nodes: nodes,
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

// Ours parses the comment of a job of this engine. Another engine may use the same cluster as the same user.
func (s *Store) Ours(j *scheduler.Job) (*Record, bool) {
	r, ok := Of(j)
	return r, ok && strings.HasPrefix(string(r.Offer), s.Engine+"/")
}

// ID returns the id of a rank's machine.
func (s *Store) ID(r *Record, rank int) string { return fmt.Sprintf("%s-%s-%d", s.Engine, r.Job, rank) }

// Parse parses a machine's id into its job and rank.
func (s *Store) Parse(id string) (job string, rank int, ok bool) {
	rest, ok := strings.CutPrefix(id, s.Engine+"-")
	job, number, ok2 := strings.Cut(rest, "-")
	rank, err := strconv.Atoi(number)
	_, err2 := strconv.ParseUint(job, 10, 64)
	return job, rank, ok && ok2 && err == nil && err2 == nil && rank >= 0 && number == strconv.Itoa(rank)
}

// Instances returns a request's machines by rank.
func (s *Store) Instances(r *Record) []engine.Instance {
	if r.Start.IsZero() {
		return nil
	}
	list := make([]engine.Instance, r.Nodes)
	for k := range list {
		i := r.Instance(s.ID(r, k), r.Start)
		if e := r.Ended(k); e != nil {
			i.State, i.Ended, i.Cause, i.Bill = engine.Ended, e.At, e.Cause, r.Lines(e)
			if e.Cause == engine.Interrupted && !r.Told.IsZero() && r.Told.Before(e.At) {
				i.Notice = e.At.Sub(r.Told)
			}
		}
		list[k] = i
	}
	return list
}

// Ended returns the end of a rank's machine; nil if it has not ended.
func (r *Record) Ended(rank int) *End {
	for n := range r.Ends {
		if r.Ends[n].Rank == rank {
			return &r.Ends[n]
		}
	}
	return nil
}

// Lines returns the cost of an allocation's machine: its own time and, if the rest of its gang kept the allocation for
// longer, the time that Slurm kept its node for. A machine without a price has no bill.
func (r *Record) Lines(e *End) []engine.Line {
	lines := r.Bill(r.Start, e.At)
	if len(lines) > 0 && r.End.After(e.At) {
		whole := r.Rate.Until(r.End.Sub(r.Start))
		lines = append(lines, engine.Line{Rule: "allocation", From: e.At, To: r.End, Amount: whole.Sub(lines[0].Amount),
			Currency: r.Currency})
	}
	return lines
}

// Folder is the place of a request's record and of its allocation's files.
func (s *Store) Folder(name string) string { return filepath.Join(s.Dir, "requests", name) }

// Keep makes a record durable.
func (s *Store) Keep(r *Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Folder(r.Name), 0o700); err != nil {
		return fmt.Errorf("keep the record of %s: %w", r.Key, err)
	}
	if err := durable.Replace(filepath.Join(s.Folder(r.Name), "record.json"), b); err != nil {
		return fmt.Errorf("keep the record of %s: %w", r.Key, err)
	}
	return nil
}

// maxFile bounds the bytes read from a file that an allocation may have written: a record of 1,000 machines has a
// tenth.
const maxFile = 4 << 20

// ReadFile reads a file of a request's folder. Programs of the server's user may write there, so it reads only
// regular files and never waits for a pipe.
func ReadFile(path string) ([]byte, error) {
	return confined.ReadFile(path, maxFile)
}

// Read reads a record; nil if there is none.
func (s *Store) Read(name string) (*Record, error) {
	b, err := ReadFile(filepath.Join(s.Folder(name), "record.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err == nil && (r.Name != name || NameOf(r.Key) != name || !plausible(r.Nodes)) {
		err = fmt.Errorf("it is the record of %q with %d machines", r.Name, r.Nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record %s: %w", name, err)
	}
	return &r, nil
}

// keepFor is how long ended requests are remembered.
const keepFor = 14 * 24 * time.Hour

// Load returns all records by their keys, and deletes those that ended long ago.
func (s *Store) Load(log *slog.Logger) (map[string]*Record, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "requests"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the engine's records: %w", err)
	}
	all := map[string]*Record{}
	for _, e := range entries {
		r, err := s.Read(e.Name())
		switch {
		case err != nil: // the comment of its Slurm job counts
			log.Error("skipped an unreadable record: remove it once its job has ended", "error", err)
		case r == nil: // its server died before it contacted Slurm
		case r.Closed && !r.End.IsZero() && time.Since(r.End) > keepFor:
			if err := os.RemoveAll(s.Folder(r.Name)); err != nil {
				log.Warn("cannot remove an old record", "record", r.Name, "error", err)
			}
		default:
			all[r.Key] = r
		}
	}
	return all, nil
}

// Owes reports whether a terminated machine has not ended.
func (r *Record) Owes() bool {
	return !r.Closed && slices.ContainsFunc(r.Given, func(k int) bool { return r.Ended(k) == nil })
}

// Lasting returns the part of a record whose change must be written.
func (r *Record) Lasting() string {
	return fmt.Sprint(r.Job, r.Start.Unix(), r.Seen.Unix(), r.State, r.End.Unix(), r.Told.Unix(), r.Ends, r.Closed)
}

// Adopt finds the job of a request whose answer was lost: the one that has started it, or the first that waits.
func (r *Record) Adopt(jobs []*scheduler.Job, claimed string) {
	if claimed != "" {
		r.Job = claimed
	}
	if r.Job != "" {
		return
	}
	for _, j := range jobs {
		n, err := strconv.ParseUint(j.ID, 10, 64)
		if err != nil {
			continue
		}
		if was, err := strconv.ParseUint(r.Job, 10, 64); err != nil || n < was {
			r.Job = j.ID
		}
	}
}

// Cause returns why a rank's machine ended.
func (r *Record) Cause(rank int, state string) engine.Cause {
	switch {
	case slices.Contains(r.Given, rank):
		return engine.Terminated
	case scheduler.Taken[state], !r.Told.IsZero():
		return engine.Interrupted
	}
	return engine.Stopped
}

// Claim returns the job that has recorded that it started the request; empty if none has.
func (s *Store) Claim(r *Record) string {
	if !r.Start.IsZero() {
		return ""
	}
	b, _ := ReadFile(filepath.Join(s.Folder(r.Name), "claim", "job")) // most have none
	return strings.TrimSpace(string(b))
}

// Marked returns a time that an allocation has written to its folder; zero if it has not.
func (s *Store) Marked(r *Record, name string) time.Time {
	b, err := ReadFile(filepath.Join(s.Folder(r.Name), name))
	if err != nil {
		return time.Time{}
	}
	if at := scheduler.Moment(strings.TrimSpace(string(b))); at.Before(time.Now()) {
		return at
	}
	return time.Now().UTC().Truncate(time.Second) // that machine's clock is ahead
}

// Left reports whether every machine of an allocation has recorded its end, so that Slurm's further work there does
// not matter. The causes are known then, too: terminated, told to end, or neither.
func (s *Store) Left(r *Record) bool {
	for k := range r.Nodes {
		if s.Marked(r, fmt.Sprintf("end.%d", k)).IsZero() {
			return false
		}
	}
	return !r.Start.IsZero()
}

// Written returns when an allocation last wrote a file of its folder.
func (s *Store) Written(r *Record, name string) time.Time {
	st, err := os.Stat(filepath.Join(s.Folder(r.Name), name))
	if err != nil {
		return r.Submitted
	}
	return st.ModTime().UTC().Truncate(time.Second)
}

// Pending returns why a job waits, and Slurm's expected start.
func (r *Record) Pending() error {
	return &engine.PendingError{Why: fmt.Sprintf("job %s waits: "+
		"%s", r.Job, explained(r.Reason)), Expected: r.Expected}
}

// explained adds an explanation to a reason code of Slurm.
func explained(reason string) string {
	switch {
	case strings.HasPrefix(reason, "Assoc"), strings.HasPrefix(reason, "QOS"):
		return reason + ", a limit of the account or QOS: it waits until other jobs of it end"
	case reason == "Priority":
		return "Priority, others come first"
	case reason == "Resources":
		return "Resources, its nodes are in use"
	case strings.HasPrefix(reason, "ReqNodeNotAvail"):
		return reason + ", its nodes are down or kept for others"
	case reason == "Dependency":
		return "Dependency, an earlier job of the same request is still in the queue"
	case reason == "", reason == "None":
		return "the scheduler has not considered it yet"
	}
	return reason
}
