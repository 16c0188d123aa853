package jobs

import (
	"context"
	"sync"
)

// Pages of the log that watchers read who were away: each names the jobs that its events are about.
const (
	pageLength = 500 // events
	mostPages  = 256 // that are kept: watchers who come back at one time read the same
)

// past is the log in such pages. A page is read and decoded once for all watchers, one page at a time.
type past struct {
	reading sync.Mutex          // held while a page is read and decoded
	pages   map[uint64][]string // by the event after which it begins
}

// page returns which jobs the events after one are about, and the number of the last of these events. Read is how
// many of them were read for that: none where the page was there.
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
	jobs, last = touched(records), records[len(records)-1].Seq
	if last == pageEnd(after) { // else it grows still
		if p.pages == nil || len(p.pages) >= mostPages {
			p.pages = map[uint64][]string{}
		}
		p.pages[after] = jobs
	}
	return jobs, last, len(records), nil
}

// pageEnd is the last event of the page that begins after one: pages of all watchers end at the same events.
func pageEnd(after uint64) uint64 { return after - after%pageLength + pageLength }
