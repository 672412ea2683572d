package outside

import (
	"strconv"
	"strings"
	"time"
)

// behaviour is the behavior of the service for one order.
type behaviour struct {
	delay        time.Duration // minimum time from the effect to the answer
	fails, loses int           // the first calls with a key that fail, or whose answers are lost
	refuses      bool
}

// behaviourIn returns the behavior that the words of a text ask for. A word whose value is not
// a number above 0 has no effect, except refuse, which needs no number.
func behaviourIn(text, prefix string) behaviour {
	var b behaviour
	for word := range strings.FieldsSeq(text) {
		own, ours := strings.CutPrefix(word, prefix)
		if !ours {
			continue
		}
		name, number, _ := strings.Cut(own, "=")
		n, _ := strconv.Atoi(number) // 0 if number is not a number
		switch name {
		case "delay":
			b.delay = time.Duration(max(n, 0)) * time.Millisecond
		case "fail", "fails":
			b.fails = n
		case "lose", "loses":
			b.loses = n
		case "refuse", "refuses":
			b.refuses = true
		}
	}
	return b
}
