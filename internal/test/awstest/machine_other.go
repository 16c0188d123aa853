//go:build !linux

package awstest

import "errors"

type machine struct{}

func (m *machine) output() []byte { return nil }
func (m *machine) over() bool     { return true }

func (s *Server) beginMachines() error {
	return errors.New("instances are processes on Linux only: leave Options.Run out")
}
func (s *Server) endMachines()             {}
func (s *Server) boot(*instance)           {}
func (s *Server) warn(*instance)           {}
func (s *Server) powerOff(*instance, bool) {}
