package jobs

import (
	"context"
	"sync"
)

// Limits on the pages of the log for watchers that come back. A page lists the jobs that its events concern.
const (
	pageLength = 500 // events
	mostPages  = 256 // pages kept: watchers that come back at the same time read the same ones
)

// past caches the pages of the log. It reads and decodes one page at a time, once for all watchers.
type past struct {
	reading sync.Mutex          // held during a read
	pages   map[uint64][]string // by the event before the page
}

// page returns the jobs that the events after the given one concern, and the number of the last of these events.
// read is the number of events read from the log: 0 for a cached page.
func (p *past) page(ctx context.Context, log Log, after uint64) (jobs []string, last uint64, read int, err error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if jobs, known := p.pages[after]; known {
		return jobs, pageEnd(after), 0, nil
	}
	records, err := log.WholeRecords(ctx, after, int(pageEnd(after)-after))
	if err != nil || len(records) == 0 {
		return nil, after, 0, err
	}
	jobs, last = touchedJobs(records), records[len(records)-1].Seq
	if last == pageEnd(after) { // otherwise the page is still growing
		if p.pages == nil || len(p.pages) >= mostPages {
			p.pages = map[uint64][]string{}
		}
		p.pages[after] = jobs
	}
	return jobs, last, len(records), nil
}

// pageEnd returns the last event of the page after the given event. Page boundaries are the same for all watchers.
func pageEnd(after uint64) uint64 { return after - after%pageLength + pageLength }
