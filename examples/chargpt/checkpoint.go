package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A checkpoint file is the line "chargpt 1", a line of JSON (header), the weights and both moments of Adam as
// little-endian float64, and the SHA-256 of everything before it. It is written under a temporary name, synced and
// renamed, so a file with the final name is complete unless the disk lost it, which the sum reveals.

const magic = "chargpt 1\n"

// kept is the number of checkpoints to keep: the newest, and another in case it is damaged.
const kept = 2

type header struct {
	Step   int64    `json:"step"`
	Seed   uint64   `json:"seed"`
	Random uint64   `json:"random"`
	Corpus string   `json:"corpus"`
	Shape  shape    `json:"shape"`
	Decays []uint64 `json:"decays"` // bits of the two float64
	Mean   uint64   `json:"mean"`   // bits of the float64
	Losses string   `json:"losses"` // digest of the loss of every step
}

func (t *trainer) encode() ([]byte, error) {
	head, err := json.Marshal(header{
		Step: t.step, Seed: t.seed, Random: uint64(t.random), Corpus: t.text.hash, Shape: t.model.shape,
		Decays: []uint64{math.Float64bits(t.adam.decay1), math.Float64bits(t.adam.decay2)},
		Mean:   math.Float64bits(t.mean), Losses: hex.EncodeToString(t.digest[:]),
	})
	if err != nil {
		return nil, err
	}
	b := slices.Concat([]byte(magic), head, []byte("\n"))
	for _, w := range t.state() {
		b = appendFloats(b, w)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

func (t *trainer) state() [][]float64 {
	return [][]float64{t.model.params.flat, t.adam.mean, t.adam.square}
}

// errDamaged marks a checkpoint that differs from what was written; resume then uses the previous one.
var errDamaged = errors.New("damaged")

// decode restores a checkpoint's state. After errDamaged nothing has changed; any other error means that the
// checkpoint belongs to another run.
func (t *trainer) decode(b []byte) error {
	if len(b) < len(magic)+sha256.Size || string(b[:len(magic)]) != magic {
		return fmt.Errorf("%w: not a checkpoint of chargpt, or cut short", errDamaged)
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return fmt.Errorf("%w: its SHA-256 does not match", errDamaged)
	}
	line, rest, _ := bytes.Cut(body[len(magic):], []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return fmt.Errorf("%w: header: %w", errDamaged, err)
	}
	digest, err := hex.DecodeString(h.Losses)
	if err != nil || len(digest) != sha256.Size || len(h.Decays) != 2 {
		return fmt.Errorf("%w: header is not complete", errDamaged)
	}
	switch {
	case h.Corpus != t.text.hash:
		return fmt.Errorf("it was trained on the text %s and this is %s (%s): use the same Go installation, or another "+
			"--checkpoint folder", h.Corpus, t.text.hash, t.text.from)
	case h.Seed != t.seed:
		return fmt.Errorf("it has the seed %d and this run %d: use the same --seed, or another --checkpoint folder",
			h.Seed, t.seed)
	case h.Shape != t.model.shape:
		return fmt.Errorf("its model has another shape (%+v): use another --checkpoint folder", h.Shape)
	}
	state := t.state()
	if len(rest) != 8*len(state)*len(state[0]) {
		return fmt.Errorf("%w: %d bytes of numbers", errDamaged, len(rest))
	}
	for _, w := range state {
		for i := range w {
			w[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[8*i:]))
		}
		rest = rest[8*len(w):]
	}
	t.step, t.random = h.Step, splitmix(h.Random)
	t.adam.decay1, t.adam.decay2 = math.Float64frombits(h.Decays[0]), math.Float64frombits(h.Decays[1])
	t.mean = math.Float64frombits(h.Mean)
	copy(t.digest[:], digest)
	return nil
}

func appendFloats(b []byte, w []float64) []byte {
	b = slices.Grow(b, 8*len(w)+sha256.Size)
	for _, v := range w {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// save publishes a checkpoint of the current step and removes all but the newest.
func (t *trainer) save(dir string) error {
	b, err := t.encode()
	if err == nil {
		err = writeAtomic(filepath.Join(dir, fmt.Sprintf("step-%012d.ckpt", t.step)), b)
	}
	if err != nil {
		return fmt.Errorf("save step %d: %w", t.step, err)
	}
	names, err := checkpoints(dir)
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-kept)] {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("drop an old checkpoint: %w", err)
		}
	}
	return nil
}

// resume restores the newest valid checkpoint of dir and prints its step; ok is false if there is none. It removes
// what a killed save left.
func (t *trainer) resume(dir string, say io.Writer) (ok bool, err error) {
	left, err := filepath.Glob(filepath.Join(dir, "step-*.ckpt.tmp"))
	if err != nil {
		return false, err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return false, fmt.Errorf("remove what a killed save left: %w", err)
		}
	}
	names, err := checkpoints(dir)
	if err != nil {
		return false, err
	}
	for _, name := range slices.Backward(names) {
		b, err := os.ReadFile(name)
		if err != nil {
			return false, fmt.Errorf("resume: %w", err)
		}
		switch err := t.decode(b); {
		case errors.Is(err, errDamaged):
			fmt.Fprintf(say, "checkpoint %s passed over: %v\n", name, err)
		case err != nil:
			return false, fmt.Errorf("resume from %s: %w", name, err)
		default:
			return true, nil
		}
	}
	return false, nil
}

// checkpoints lists the files of dir, oldest step first.
func checkpoints(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "step-*.ckpt"))
	if err != nil {
		return nil, fmt.Errorf("list the checkpoints: %w", err)
	}
	slices.SortFunc(names, func(a, b string) int { // 12 digits sort as text
		return strings.Compare(filepath.Base(a), filepath.Base(b))
	})
	return names, nil
}

// writeAtomic writes a file so that its name never refers to a partial file.
func writeAtomic(name string, b []byte) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
