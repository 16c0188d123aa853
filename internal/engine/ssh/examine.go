package ssh

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/engine/ssh/openssh"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/durable"
)

var _ engine.Examiner = (*Driver)(nil)

// Examine implements engine.Examiner.
func (d *Driver) Examine(ctx context.Context) []engine.Finding {
	found := make([][]engine.Finding, len(d.links))
	at := map[*link.Link]int{}
	for n, l := range d.links {
		at[l] = n
		l.Begin(d.ctx)
	}
	d.each(func(l *link.Link) { found[at[l]] = l.Examine(ctx) })
	var all []engine.Finding
	for _, list := range found {
		all = append(all, list...)
	}
	return all
}

// UnknownKeys returns the host keys of a setting's machines that ssh does not know.
func UnknownKeys(ctx context.Context, s *engine.Setting, data string) ([]openssh.Key, error) {
	with, err := setting.Read(s)
	if err != nil {
		return nil, err
	}
	var list []openssh.Key
	for n := range with.Hosts {
		if with.Hosts[n].Join != "" {
			continue
		}
		o := &openssh.Host{Name: with.Hosts[n].Name, Target: with.Hosts[n].SSH, Engine: s.Name,
			Dir: setting.Dir(data, s.Name), Config: with.Config}
		key, err := o.Unknown(ctx)
		if err != nil {
			return list, err
		}
		if key != nil {
			list = append(list, *key)
		}
	}
	return list, nil
}

// Accept stores keys as the only accepted host keys of an engine's machines.
func Accept(data, name string, keys []openssh.Key) error {
	dir := setting.Dir(data, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, openssh.KnownHosts)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, k := range keys {
		text = append(text, k.Lines...)
	}
	return durable.Replace(path, text)
}
