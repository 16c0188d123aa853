// Package slurm reads the words of Slurm's batch scripts: options, commands, times and signals.
package slurm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// IsScript reports whether a text is a batch script.
func IsScript(s string) bool {
	return strings.HasPrefix(s, "#!") || regexp.MustCompile(`(?m)^#SBATCH\s`).MatchString(s)
}

// shortNames lists the options of one letter, each with its long name.
var shortNames = map[byte]string{
	'J': "job-name", 'N': "nodes", 'n': "ntasks", 'c': "cpus-per-task", 'p': "partition", 't': "time", 'o': "output",
	'e': "error", 'A': "account", 'a': "array", 'd': "dependency", 'D': "chdir", 'q': "qos", 'C': "constraint",
	'G': "gpus",
	'w': "nodelist", 'x': "exclude",
	'b': "begin", 'L': "licenses", 'm': "distribution", 's': "oversubscribe", 'i': "input",
}

// An Option of sbatch, with its long name. An option that sbatch does not have has no name; its value is the word.
type Option struct {
	Name, Value string
	Raw         string // Value with its quotes
}

// Options parses a line of options: --name=value, --name value, -n value, -n4.
func Options(text string) (list []Option) {
	words := Words(text)
	if n := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") }); n >= 0 {
		words = words[:n] // a comment
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		name, value, given := "", "", false
		switch {
		case strings.HasPrefix(word, "--"):
			name, value, given = strings.Cut(word[2:], "=")
		case len(word) >= 2 && word[0] == '-':
			name, value, given = shortNames[word[1]], strings.TrimPrefix(word[2:], "="), len(word) > 2
		}
		if name == "" {
			list = append(list, Option{Value: word})
			continue
		}
		if !given && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			value, words = words[0], words[1:]
		}
		list = append(list, Option{Name: name, Value: Unquoted(value), Raw: value})
	}
	return list
}

// Command splits the leading options from a command. Quotes hold the value of an option together.
func Command(s string) (rest, options string) {
	took := s
	next := func() string {
		word := ""
		if list := Words(took); len(list) > 0 {
			word = list[0]
		}
		took = strings.TrimLeft(took[min(len(took), strings.Index(took, word)+len(word)):], " \t")
		return word
	}
	for strings.HasPrefix(took, "-") {
		if word := next(); len(word) == 2 && took != "" && !strings.HasPrefix(took, "-") { // -n 4
			next()
		}
	}
	return took, strings.TrimSpace(strings.TrimSuffix(s, took))
}

// TimeLimit parses minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
// days-hours:minutes:seconds. 0 means no limit.
func TimeLimit(s string) (time.Duration, bool) {
	if u := strings.ToUpper(s); u == "UNLIMITED" || u == "INFINITE" {
		return 0, true
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	var n []int64
	for part := range strings.SplitSeq(days+":"+clock, ":") {
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil || v < 0 || v > 100_000 {
			return 0, false
		}
		n = append(n, v)
	}
	span := func(d, h, m, s int64) (time.Duration, bool) {
		return time.Duration(d)*24*time.Hour + time.Duration(h)*time.Hour + time.Duration(m)*time.Minute +
			time.Duration(s)*time.Second, true
	}
	switch {
	case hasDays && len(n) == 2:
		return span(n[0], n[1], 0, 0)
	case hasDays && len(n) == 3:
		return span(n[0], n[1], n[2], 0)
	case len(n) == 4:
		return span(n[0], n[1], n[2], n[3])
	case len(n) == 2:
		return span(0, 0, n[1], 0)
	case len(n) == 3:
		return span(0, 0, n[1], n[2])
	}
	return 0, false
}

// Short formats a duration without zero units.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var signalNumbers = map[string]string{"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}

// Signal parses [R][B]:USR1@90; the time is in seconds, 60 by default. It returns false for a signal that a program
// cannot save on, and for a time that is not 1 to 65,535 seconds.
func Signal(value string) (name string, seconds int, ok bool) {
	text := regexp.MustCompile(`^[RB]+:`).ReplaceAllString(value, "")
	name, lead, ok := strings.Cut(text, "@")
	if !ok {
		lead = "60"
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if known, ok := signalNumbers[name]; ok {
		name = known
	}
	seconds, err := strconv.Atoi(lead)
	switch name {
	case "TERM", "INT", "HUP", "USR1", "USR2":
	default:
		return "", 0, false
	}
	return name, seconds, err == nil && seconds >= 1 && seconds <= 65535
}

var sizeForm = regexp.MustCompile(`(?i)^([0-9]{1,12})([kmgt]?)b?$`)

// Mebibytes parses a size: 16G, 4000M, or MiB without a unit. It returns false for what is not a size.
func Mebibytes(value string) (int64, bool) {
	m := sizeForm.FindStringSubmatch(value)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > 1<<33 {
		return 0, false
	}
	switch strings.ToLower(m[2]) {
	case "k":
		return min(n, max(1, n/1024)), true
	case "g":
		return n * 1024, true
	case "t":
		return n * 1024 * 1024, true
	}
	return n, true
}
