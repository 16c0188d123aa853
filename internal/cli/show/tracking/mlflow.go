package tracking

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
)

// A File is a file to write. A path that ends with a slash is an empty folder.
type File struct {
	Path string // with slashes, below the folder of all files
	Text string
}

// MLflow's codes of a run's state and of its source.
const (
	runRunning  = 1
	runFinished = 3
	runFailed   = 4
	runKilled   = 5
	sourceLocal = 4
)

// MLflow returns the files of an experiment with a run for each trial, in the layout of MLflow's file store. folder is
// the absolute path of the store; runs refer to their artifacts by it.
func MLflow(s *Search, folder string) (files []File, err error) {
	id := experiment(s.Group.ID)
	opened := millis(s.Group.Submitted)
	newest := opened
	if s.Group.Finished != nil {
		newest = millis(*s.Group.Finished)
	}
	files = append(files, File{path.Join(id, "meta.yaml"), mapping(
		"artifact_location", uri(folder, id), "creation_time", opened, "experiment_id", id, "last_update_time", newest,
		"lifecycle_stage", "active", "name", s.Group.ID)})
	for i := range s.Trials {
		list, err := s.run(id, folder, &s.Trials[i])
		if err != nil {
			return nil, fmt.Errorf("trial %s: %w", s.Trials[i].ID, err)
		}
		files = append(files, list...)
	}
	return files, nil
}

// run returns the files of a run.
func (s *Search) run(id, folder string, t *api.Trial) (files []File, err error) {
	hash := sha256.Sum256([]byte(t.ID))
	run := hex.EncodeToString(hash[:16])
	at := func(parts ...string) string { return path.Join(append([]string{id, run}, parts...)...) }
	from, to := s.span(t)
	if from.IsZero() {
		from = s.Group.Submitted
	}
	status := [...]int{runRunning, runFinished, runKilled, runFailed}[s.outcome(t)]
	var end any
	if !to.IsZero() {
		end = millis(to)
	}
	files = append(files, File{at("meta.yaml"), mapping(
		"artifact_uri", uri(folder, id, run, "artifacts"), "end_time", end, "entry_point_name", "", "experiment_id", id,
		"lifecycle_stage", "active", "run_id", run, "run_name", t.ID, "run_uuid", run, "source_name", "",
		"source_type", sourceLocal, "source_version", "", "start_time", millis(from), "status", status, "tags", []string{},
		"user_id", s.Group.User)},
		File{at("artifacts") + "/", ""})
	params, proxy := s.ran(t)
	for _, p := range s.Group.Study.Params {
		files = append(files, File{at("params", key(p.Name)), params[p.Name]})
	}
	for _, name := range sorted(proxy) {
		files = append(files, File{at("params", key(name)), proxy[name]})
	}
	tags := []figure{{"mlflow.runName", t.ID}, {"mlflow.user", s.Group.User}, {"scrimp.job", t.ID},
		{"scrimp.state", t.State}, {"scrimp.why", t.Why}}
	if s.Group.Study.Proxy != nil {
		tags = append(tags, figure{"scrimp.proxy", strconv.FormatBool(t.Proxy)})
	}
	metrics := map[string]string{}
	metric := key(s.Group.Study.Metric)
	for _, v := range t.Curve {
		when := from
		if v.At != nil {
			when = *v.At
		}
		metrics[metric] += fmt.Sprintf("%d %s %d\n", millis(when), strconv.FormatFloat(v.Value, 'g', -1, 64), s.step(v.Unit))
	}
	last := later(from, to)
	for _, f := range s.figures(t) {
		if f.name == metric {
			return nil, fmt.Errorf("the metric is named %s, as a figure of its bill is: export csv or optuna", metric)
		}
		metrics[f.name] = fmt.Sprintf("%d %s 0\n", millis(last), f.value)
		tags = append(tags, figure{"scrimp." + f.name, f.value})
	}
	for _, name := range sorted(metrics) {
		files = append(files, File{at("metrics", name), metrics[name]})
	}
	for _, f := range tags {
		files = append(files, File{at("tags", f.name), f.value})
	}
	return files, nil
}

func sorted(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// experiment returns the ID of an experiment: 18 digits that depend on its name only.
func experiment(name string) string {
	hash := sha256.Sum256([]byte(name))
	const least, count = 1e17, 9e17
	return strconv.FormatUint(least+binary.BigEndian.Uint64(hash[:8])%count, 10)
}

// key returns a name that MLflow accepts, which is also the name of a file.
func key(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.", r) {
			return r
		}
		return '_'
	}, name)
	if strings.Trim(name, ".") == "" {
		name = "_" + name
	}
	return name[:min(len(name), 250)]
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// uri returns the URI of a path below a folder.
func uri(folder string, parts ...string) string {
	u := url.URL{Scheme: "file", Path: path.Join(append([]string{folder}, parts...)...)}
	return u.String()
}

// mapping returns pairs of names and values as a YAML mapping.
func mapping(pairs ...any) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		text := ""
		switch v := pairs[i+1].(type) {
		case nil:
			text = "null"
		case string:
			text = strconv.Quote(v)
		case []string:
			text = "[]"
		default:
			text = fmt.Sprint(v)
		}
		fmt.Fprintf(&b, "%s: %s\n", pairs[i], text)
	}
	return b.String()
}
