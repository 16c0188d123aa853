package awstest

import "net/http"

type machine struct{}

func (m *machine) output() []byte                                                    { return nil }
func (s *Server) boot(*instance)                                                     {}
func (s *Server) warn(*instance)                                                     {}
func (s *Server) powerOff(*instance)                                                 {}
func (s *Server) control(w http.ResponseWriter, r *http.Request)                     {}
func (s *Server) json(w http.ResponseWriter, r *http.Request, c caller, body []byte) {}

type SavingsPlan struct{}
type reservation struct{}

func (c *call) quota(d spec, t Type, z Zone, count int) (int, error) { return count, nil }
