package server

import (
	"testing"
	"time"
)

// HandClock gives tests outside the package a clock to turn.
func HandClock() (clock Clock, advance func(ms int), asleep func(*testing.T, int)) {
	c := newHandClock()
	return c, func(ms int) { c.advance(time.Duration(ms) * time.Millisecond) }, c.await
}
