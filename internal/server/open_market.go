package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/engine/local"
)

// openMarket finds the folder's market, or starts it.
func (s *Server) openMarket(ctx context.Context) error {
	if err := s.startMarket(ctx); err != nil {
		return err
	}
	d, err := local.Dial(filepath.Join(s.opts.Dir, "market"))
	if err != nil {
		return err
	}
	s.market = d
	s.clock, err = d.Clock(ctx)
	return err
}

// marketEvery is between two looks at whether the market's process lives.
const marketEvery = 5 * time.Second

// keepMarket starts the market's process again where it has died: it knows its
// machines from its journal, and they have gone on meanwhile.
func (s *Server) keepMarket(ctx context.Context) {
	for pause(ctx, marketEvery) == nil {
		if !s.store.Leads() {
			continue
		}
		if _, err := s.market.Clock(ctx); err == nil || ctx.Err() != nil {
			continue
		}
		if err := s.startMarket(ctx); err != nil {
			if ctx.Err() == nil {
				s.opts.Log.Error("the market does not answer, and is not started again", "error", err)
			}
			continue
		}
		s.opts.Log.Warn("the market did not answer: its process was started again")
	}
}

// startMarket starts the market's process where none answers.
func (s *Server) startMarket(ctx context.Context) error {
	dir := filepath.Join(s.opts.Dir, "market")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open market: %w", err)
	}
	exe := s.opts.Exe
	if exe == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("open market: %w", err)
		}
		exe = self
	}
	args := []string{"market", "serve", "--data", dir}
	if s.opts.Market != "" {
		args = append(args, "--market", s.opts.Market)
	}
	after, err := s.marketTime(ctx)
	if err != nil {
		return err
	}
	if !after.IsZero() {
		args = append(args, "--after", after.Format(time.RFC3339Nano))
	}
	return local.Spawn(ctx, dir, exe, args)
}

// marketTime is the market time that the log has come to. A market that is opened
// begins there: of a log that was restored from a backup it can be days ahead of
// the wall, and jobs would stand still until a clock that began anew had caught up.
func (s *Server) marketTime(ctx context.Context) (time.Time, error) {
	end, err := s.store.End(ctx)
	if err != nil || end == 0 {
		return time.Time{}, err
	}
	records, err := s.store.Records(ctx, end-1, 1)
	if err != nil || len(records) == 0 {
		return time.Time{}, err
	}
	e, _, err := control.Decode(records[0])
	return e.At, err
}

// closeMarket gives back every machine and ends the market.
func (s *Server) closeMarket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	list, err := s.market.List(ctx)
	if err != nil {
		s.opts.Log.Error("machines not listed; they go on", "error", err)
		return
	}
	for _, i := range list {
		if !s.control.Mine(&i) { // its owner is another server, or not decided
			continue
		}
		if err := s.market.Terminate(ctx, i.ID); err != nil {
			s.opts.Log.Debug("machine is gone already", "instance", i.ID)
		}
	}
	if err := s.market.Stop(ctx); err != nil {
		s.opts.Log.Error("market not stopped", "error", err)
	}
}
