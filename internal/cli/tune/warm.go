package tune

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/work/study"
	"scrimp/internal/work/studyfile"
)

// warmed adds what earlier studies and CSV files know to a search. Files lie beside the study file.
func warmed(ctx context.Context, c *command.Client, file string, read *studyfile.File) error {
	s := &read.Study
	for _, name := range read.Warm {
		var list []study.Past
		var err error
		if strings.HasSuffix(name, ".csv") {
			path := name
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(file), path)
			}
			var text []byte
			if text, err = os.ReadFile(path); err == nil {
				list, err = studyfile.Observations(name, text, s)
			}
		} else {
			list, err = earlier(ctx, c, name, s)
		}
		if err != nil {
			return fmt.Errorf("%s: warm_start: %w", file, err)
		}
		s.Past = merged(s.Past, list)
	}
	if _, err := s.Check(); err != nil { // the rest of the file is valid
		return fmt.Errorf("%s: warm_start: %w", file, err)
	}
	return nil
}

// merged adds configurations to those of other studies and files, each value once.
func merged(past, list []study.Past) []study.Past {
	for _, p := range list {
		i := slices.IndexFunc(past, func(o study.Past) bool { return slices.Equal(o.Params, p.Params) })
		if i < 0 {
			past = append(past, p)
			continue
		}
		for _, v := range p.Points {
			if !slices.Contains(past[i].Points, v) {
				past[i].Points = append(past[i].Points, v)
			}
		}
	}
	return past
}

// earlier returns what an earlier study has found, if it searched the same space.
func earlier(ctx context.Context, c *command.Client, name string, s *study.Spec) (list []study.Past, err error) {
	g, err := c.Group(ctx, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the study %s: %w", name, err)
	case g.Study == nil:
		return nil, fmt.Errorf("%s is not a study: scrimp groups lists groups with their kinds", name)
	case g.Study.Metric != s.Metric || g.Study.Maximize != s.Maximize:
		return nil, fmt.Errorf("%s optimizes %s, and this search optimizes %s: leave it out", name,
			goal(g.Study.Metric, g.Study.Maximize), goal(s.Metric, s.Maximize))
	}
	if was := g.Study.Fidelity; (was == nil) != (s.Fidelity.Name == "") || was != nil && was.Name != s.Fidelity.Name {
		return nil, fmt.Errorf("%s measures training in another unit: leave it out, or give this search its fidelity", name)
	}
	onProxy, err := sameProxy(g, s)
	if err != nil {
		return nil, err
	}
	trials, err := c.TrialCurves(ctx, g.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range trials {
		if len(t.Curve) == 0 || t.Proxy != onProxy {
			continue
		}
		p, err := inSpace(t, s)
		if err != nil {
			return nil, fmt.Errorf("trial %s is not in the space of this search: %w: leave %s out", t.ID, err, name)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no value of the metric: leave it out", name)
	}
	return list, nil
}

// sameProxy reports whether a search learns from the trials of an earlier study's proxy, which is then the same as its
// own. A search without one learns from the trials that were trained in full.
func sameProxy(g api.Group, s *study.Spec) (bool, error) {
	was := g.Study.Proxy
	switch {
	case was == nil && s.Proxy != nil:
		return false, fmt.Errorf("%s has no proxy, and its values do not compare with those of this search's: leave it out",
			g.Name)
	case s.Proxy == nil:
		return false, nil
	case !slices.Equal((*study.Proxy)(&was.StudyProxy).Texts(), s.Proxy.Texts()):
		return false, fmt.Errorf("the proxy of %s has other settings: leave %[1]s out", g.Name)
	}
	return true, nil
}

func goal(metric string, maximize bool) string {
	if maximize {
		return metric + " (maximize)"
	}
	return metric + " (minimize)"
}

// inSpace converts a trial of an earlier study.
func inSpace(t api.Trial, s *study.Spec) (p study.Past, err error) {
	for d := range s.Params {
		text, is := t.Params[s.Params[d].Name]
		if !is {
			return p, fmt.Errorf("it has no parameter %s", s.Params[d].Name)
		}
		if _, err := s.Params[d].Read(text); err != nil {
			return p, fmt.Errorf("%s: %w", s.Params[d].Name, err)
		}
		p.Params = append(p.Params, text)
	}
	if len(t.Params) > len(s.Params) {
		return p, fmt.Errorf("it has %d parameters, and the space has %d", len(t.Params), len(s.Params))
	}
	for _, v := range t.Curve {
		p.Points = append(p.Points, study.Point{Unit: v.Unit, Value: v.Value})
	}
	return p, nil
}
