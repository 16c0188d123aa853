package reply

import "net/http"

// Flush sends bytes of a stream at once.
func Flush(w http.ResponseWriter, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.Write(b)
	if f, ok := w.(http.Flusher); ok && err == nil {
		f.Flush()
	}
	return err
}
