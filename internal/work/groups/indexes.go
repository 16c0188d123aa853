package groups

import (
	"fmt"
	"regexp"
	"strconv"
)

// Indexes holds the indices of an array's members: From, From+Step and so on, Members in total.
type Indexes struct {
	From    int `json:"from"`
	Step    int `json:"step"`
	Members int `json:"members"`
}

// Bounds of arrays.
const (
	MaxMembers = 10_000
	MaxIndex   = 1_000_000_000
)

// Index returns the index of the n-th member, from 0.
func (x Indexes) Index(n int) int { return x.From + n*x.Step }

// Env returns the variables of the array's member with the index, under scrimp's names and Slurm's.
func (x Indexes) Env(array string, index int) map[string]string {
	env := map[string]string{"SCRIMP_ARRAY_ID": array, "SLURM_ARRAY_JOB_ID": array}
	for what, n := range map[string]int{"INDEX": index, "COUNT": x.Members, "MIN": x.From, "MAX": x.Index(x.Members - 1),
		"STEP": x.Step} {
		env["SCRIMP_ARRAY_"+what] = strconv.Itoa(n)
		env["SLURM_ARRAY_TASK_"+map[bool]string{true: "ID", false: what}[what == "INDEX"]] = strconv.Itoa(n)
	}
	return env
}

// arrayForm matches FROM-TO, FROM-TO:STEP, or either followed by %N.
var arrayForm = regexp.MustCompile(`^([0-9]{1,10})-([0-9]{1,10})(?::([0-9]{1,10}))?(?:%([0-9]{1,10}))?$`)

// listForm matches a single index and lists of indexes and ranges, which other systems accept.
var listForm = regexp.MustCompile(`^[0-9]+(-[0-9]+(:[0-9]+)?)?(,[0-9]+(-[0-9]+(:[0-9]+)?)?)*(%[0-9]+)?$`)

// ParseIndexes parses the indices of an array, and how many members may be open at once: by default all, but at most
// 1,000.
func ParseIndexes(text string) (a Indexes, atOnce int, err error) {
	m := arrayForm.FindStringSubmatch(text)
	switch {
	case m != nil:
	case listForm.MatchString(text):
		return a, 0, fmt.Errorf("%q is a list, and the indexes of an array are one range: submit an array for each part, "+
			"such as 5-5 for the index 5", text)
	default:
		return a, 0, fmt.Errorf("%q names no indexes: write them as 0-99, every second as 0-98:2, and 0-99%%8 for at most "+
			"8 members at once", text)
	}
	number := func(i, otherwise int) int {
		if m[i] == "" {
			return otherwise
		}
		n, _ := strconv.Atoi(m[i]) // at most ten digits
		return n
	}
	to := number(2, 0)
	a = Indexes{From: number(1, 0), Step: number(3, 1)}
	switch {
	case to > MaxIndex:
		return a, 0, fmt.Errorf("%q ends above %d", text, MaxIndex)
	case a.From > to:
		return a, 0, fmt.Errorf("%q has no member: it starts above its end", text)
	case a.Step == 0:
		return a, 0, fmt.Errorf("%q has a step of 0: write 1 or more", text)
	}
	if a.Members = (to-a.From)/a.Step + 1; a.Members > MaxMembers {
		return a, 0, fmt.Errorf("%q has %d members, and at most %d may be: submit several arrays", text, a.Members,
			MaxMembers)
	}
	if atOnce = number(4, min(a.Members, openAtOnce)); atOnce == 0 {
		return a, 0, fmt.Errorf("%q lets 0 members run at once: write 1 or more, or leave %%0 out", text)
	}
	return a, min(atOnce, a.Members), nil
}

// openAtOnce is the default number of members that may be open at once: others start as these end, so that a large
// array takes little memory.
const openAtOnce = 1000
