package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/size"
)

// number is a number in slurmrestd's forms: plain, with null for unknown and -1 for unlimited, or since v0.0.39 {set,
// infinite, number}.
type number struct {
	set, infinite bool
	n             int64
}

func (v *number) UnmarshalJSON(b []byte) error {
	var o struct {
		Set      bool    `json:"set"`
		Infinite bool    `json:"infinite"`
		Number   float64 `json:"number"`
	}
	switch {
	case string(b) == "null":
	case strings.HasPrefix(string(b), "{"):
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		*v = number{o.Set, o.Infinite, int64(o.Number)}
	default:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf("%s is not a number", b)
		}
		*v = number{f >= 0, f < 0, int64(f)}
	}
	return nil
}

// span converts a limit in the given unit; 0 means no limit.
func (v number) span(unit time.Duration) time.Duration {
	if !v.set || v.infinite || v.n > int64(100*365*24*time.Hour/unit) {
		return 0
	}
	return time.Duration(v.n) * unit
}

// count converts a limit; 0 means no limit.
func (v number) count() int {
	if !v.set || v.infinite || v.n >= math.MaxInt32 {
		return 0
	}
	return int(v.n)
}

// time converts a time; zero if unknown.
func (v number) time() time.Time {
	if !v.set || v.infinite {
		return time.Time{}
	}
	return scheduler.Moment(strconv.FormatInt(v.n, 10))
}

// listed is a list of words: comma-separated, or since v0.0.39 a list.
type listed []string

func (l *listed) UnmarshalJSON(b []byte) error {
	if strings.HasPrefix(string(b), "[") {
		var s []string
		err := json.Unmarshal(b, &s)
		*l = s
		return err
	}
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*l = nil
	if s != nil && *s != "" {
		*l = strings.Split(*s, ",")
	}
	return nil
}

// last returns the last word; empty if there is none.
func (l listed) last() string {
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1]
}

// partitionForm is a partition; the first names are those of v0.0.38.
type partitionForm struct {
	Name    string `json:"name"`
	State   listed `json:"state"`
	Most    number `json:"max_time_limit"`
	Default number `json:"default_time_limit"`
	Mode    listed `json:"preemption_mode"`
	Grace   number `json:"preemption_grace_time"`
	Nodes   number `json:"maximum_nodes_per_job"`

	Later struct {
		State listed `json:"state"`
	} `json:"partition"`
	Maximums struct {
		Time  number `json:"time"`
		Nodes number `json:"nodes"`
	} `json:"maximums"`
	Defaults struct {
		Time number `json:"time"`
	} `json:"defaults"`
	LaterGrace number `json:"grace_time"`
}

func (p *partitionForm) partition() scheduler.Partition {
	if state := p.Later.State; len(state) > 0 {
		p.State = state
	}
	if p.Maximums.Time != (number{}) {
		p.Most = p.Maximums.Time
	}
	if p.Defaults.Time != (number{}) {
		p.Default = p.Defaults.Time
	}
	if p.LaterGrace.set {
		p.Grace = p.LaterGrace
	}
	if p.Maximums.Nodes != (number{}) {
		p.Nodes = p.Maximums.Nodes
	}
	part := scheduler.Partition{State: "UP", Limit: p.Most.span(time.Minute), Nodes: p.Nodes.count()}
	if len(p.State) > 0 {
		part.State = strings.ToUpper(p.State[0])
	}
	part.Defaults = (p.Default.set || p.Default.infinite) && p.Default.span(time.Minute) != part.Limit
	for _, mode := range p.Mode {
		if !slices.Contains([]string{"disabled", "off", "gang", "within"}, strings.ToLower(mode)) {
			part.Preempted = true
		}
	}
	if part.Preempted || len(p.Mode) == 0 { // or unknown: the user may set it
		part.Grace = p.Grace.span(time.Second)
	}
	return part
}

// nodeForm is a node, in all of its partitions.
type nodeForm struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Hostname   string `json:"hostname"`
	CPUs       int    `json:"cpus"`
	Memory     int64  `json:"real_memory"` // MiB
	GRES       string `json:"gres"`
	Features   listed `json:"features"`
	State      listed `json:"state"`
	Flags      listed `json:"state_flags"` // only v0.0.38; later among the states
	Partitions listed `json:"partitions"`
}

func (r *nodeForm) node(partition string) scheduler.Node {
	n := scheduler.Node{Name: r.Name, Partition: partition, Address: r.Address, Host: r.Hostname, CPUs: r.CPUs,
		Memory: size.Bytes(r.Memory << 20), Features: r.Features, Usable: true}
	for _, state := range slices.Concat(r.State, r.Flags) {
		state = strings.ToLower(state)
		n.Usable = n.Usable && (scheduler.Usable(state) || state == "reboot_requested")
	}
	n.Accelerator, n.Accelerators = scheduler.GPUs(r.GRES)
	return n
}

// jobForm is a job of the controller.
type jobForm struct {
	ID      int64  `json:"job_id"`
	Name    string `json:"name"`
	State   listed `json:"job_state"`
	Reason  string `json:"state_reason"`
	Start   number `json:"start_time"`
	End     number `json:"end_time"`
	Nodes   string `json:"nodes"`
	Comment string `json:"comment"`
	User    string `json:"user_name"`
	UserID  number `json:"user_id"`
}

// of reports whether a job belongs to a user, by name, or by number if slurmrestd gives no name.
func (r *jobForm) of(name string) bool {
	if r.User != "" {
		return r.User == name
	}
	u, err := user.Lookup(name)
	return err == nil && r.UserID.set && u.Uid == strconv.FormatInt(r.UserID.n, 10)
}

func (r *jobForm) job() *scheduler.Job {
	return &scheduler.Job{ID: strconv.FormatInt(r.ID, 10), State: r.State.last(), Reason: r.Reason, Start: r.Start.time(),
		End: r.End.time(), Nodes: r.Nodes, Name: r.Name, Comment: r.Comment}
}

// accountForm is a job of slurmdbd.
type accountForm struct {
	ID    int64 `json:"job_id"`
	State struct {
		Current listed `json:"current"`
	} `json:"state"`
	Time struct {
		Start number `json:"start"`
		End   number `json:"end"`
	} `json:"time"`
	Nodes string `json:"nodes"`
}

func (r *accountForm) job() *scheduler.Job {
	j := &scheduler.Job{ID: strconv.FormatInt(r.ID, 10), State: r.State.Current.last(), Start: r.Time.Start.time(),
		End: r.Time.End.time(), Nodes: r.Nodes}
	if strings.Contains(j.Nodes, "None") {
		j.Nodes = ""
	}
	return j
}
