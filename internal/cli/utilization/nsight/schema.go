package nsight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// checkSchema counts the entries of a database's schema before SQLite parses it: parsing cannot be stopped, and a
// hostile schema takes hours. Page 1 is the root of the schema's tree; the format is on sqlite.org/fileformat2.html.
func checkSchema(name string) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, fileHeader)
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("the SQLite database is incomplete: %s", fix)
	}
	size := int64(binary.BigEndian.Uint16(head[16:]))
	if size == 1 {
		size = 65536
	}
	if size < 512 || size > 65536 || size&(size-1) != 0 {
		return fmt.Errorf("the SQLite database is damaged, with pages of %d bytes: %s", size, fix)
	}
	entries := 0
	pages := []uint32{1}
	for i := 0; i < len(pages); i++ {
		page := make([]byte, size)
		n, err := f.ReadAt(page, int64(pages[i]-1)*size)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		children, cells := pageOf(page[:n], pages[i] == 1)
		pages, entries = append(pages, children...), entries+cells
		if len(pages) > mostTables || entries > mostTables {
			return fmt.Errorf("it has more than %d tables and indexes, and Nsight Systems writes fewer: %s", mostTables, fix)
		}
	}
	return nil
}

// Parts of the format, in bytes.
const (
	fileHeader   = 100 // on page 1 before the header of the page
	pageHeader   = 12
	interior     = 0x05 // the kind of a page with the numbers of others
	leaf         = 0x0d
	cellPointers = 2
)

// pageOf returns the children of an interior page of a table, or how many rows a leaf has. A damaged page has neither:
// SQLite reports it.
func pageOf(page []byte, first bool) (children []uint32, rows int) {
	at := 0
	if first {
		at = fileHeader
	}
	if len(page) < at+pageHeader {
		return nil, 0
	}
	cells := int(binary.BigEndian.Uint16(page[at+3:]))
	switch page[at] {
	case leaf:
		return nil, cells
	case interior:
		children = append(children, binary.BigEndian.Uint32(page[at+8:]))
		for i := range cells {
			pointer := at + pageHeader + cellPointers*i
			if pointer+cellPointers > len(page) {
				break
			}
			if cell := int(binary.BigEndian.Uint16(page[pointer:])); cell+4 <= len(page) {
				children = append(children, binary.BigEndian.Uint32(page[cell:]))
			}
		}
	}
	valid := children[:0]
	for _, c := range children {
		if c > 1 {
			valid = append(valid, c)
		}
	}
	return valid, 0
}
