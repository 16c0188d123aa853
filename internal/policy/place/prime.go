package place

// Saw tells of a zone's state in a tick before the ones that are decided, which
// may be before the job's first (below zero): what others saw there.
func (p *Foresight) Saw(zone int, up bool, tick int) {
	if p.mem == nil {
		p.mem = newMemory(p.Job)
	}
	p.mem.see(zone, up, tick, p.Job.Tick.Hours())
}
