package attempt

import (
	"time"

	_ "scrimp/internal/test/sameseed"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
