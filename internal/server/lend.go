package server

import "scrimp/internal/engine"

// lender is the engine that lends credentials for a job's store, and the prefix in its bucket that is the job's
// own; nil: none does.
func (s *Server) lender(address, job string) (engine.Lender, string) {
	for _, e := range s.engines {
		l, ok := e.Driver.(engine.Lender)
		if !ok {
			continue
		}
		if store, declared := l.Lends(); declared {
			if prefix, within := store.Of(address, job); within {
				return l, prefix
			}
		}
	}
	return nil, ""
}

// lentStores are the addresses of the stores that engines lend credentials for: job files may name them too.
func (s *Server) lentStores() (list []string) {
	for _, e := range s.engines {
		if l, ok := e.Driver.(engine.Lender); ok {
			if store, declared := l.Lends(); declared {
				list = append(list, store.Addresses()...)
			}
		}
	}
	return list
}
