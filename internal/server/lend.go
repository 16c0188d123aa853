package server

import "scrimp/internal/engine"

// lender returns the engine that lends credentials for a job's store, and the job's own prefix in the bucket.
// It returns nil if no engine does.
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

// lentStores returns the addresses of the stores that engines lend credentials for. Job files may name them
// too.
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
