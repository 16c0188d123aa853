package record

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// wide reads UTF-16 as UTF-8. Invalid units become U+FFFD, which no number contains.
type wide struct {
	from  io.Reader
	order binary.ByteOrder
	high  rune // first half of a pair, until the second arrives
	ready []byte
	err   error
}

// wideOrder returns the byte order of a text in UTF-16, from its mark or the zero bytes of its first two characters;
// nil for another text.
func wideOrder(start []byte) binary.ByteOrder {
	if len(start) < 4 {
		return nil
	}
	a, b, c, d := start[0], start[1], start[2], start[3]
	switch {
	case a == 0xff && b == 0xfe, a != 0 && b == 0 && c != 0 && d == 0:
		return binary.LittleEndian
	case a == 0xfe && b == 0xff, a == 0 && b != 0 && c == 0 && d != 0:
		return binary.BigEndian
	}
	return nil
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.ready) == 0 && w.err == nil {
		w.fill()
	}
	n := copy(p, w.ready)
	if w.ready = w.ready[n:]; n > 0 {
		return n, nil
	}
	return 0, w.err
}

// fill decodes the next units.
func (w *wide) fill() {
	room := make([]byte, 1<<14)
	n, err := io.ReadFull(w.from, room)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	for at := 0; at+1 < n; at += 2 {
		unit := rune(w.order.Uint16(room[at:]))
		switch {
		case w.high != 0 && utf16.DecodeRune(w.high, unit) != utf8.RuneError:
			w.ready = utf8.AppendRune(w.ready, utf16.DecodeRune(w.high, unit))
			w.high = 0
			continue
		case w.high != 0:
			w.ready = utf8.AppendRune(w.ready, utf8.RuneError)
			w.high = 0
		}
		if unit >= 0xd800 && unit < 0xdc00 {
			w.high = unit
			continue
		}
		w.ready = utf8.AppendRune(w.ready, unit)
	}
	if w.err = err; err != nil && (w.high != 0 || n%2 != 0) {
		w.ready = utf8.AppendRune(w.ready, utf8.RuneError)
	}
}
