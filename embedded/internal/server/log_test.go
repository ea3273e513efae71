package server

import (
	"fmt"
	"testing"
	"time"
)

func TestServerLog(t *testing.T) {
	var l serverLog
	for i := range 2*logLines + 7 {
		l.add("a:1", fmt.Sprint(i))
	}
	all := l.between(time.Time{}, time.Now())
	if len(all) != logLines || all[0].Text != fmt.Sprint(logLines+7) || all[logLines-1].Text != fmt.Sprint(2*logLines+6) {
		t.Errorf("%d lines from %q to %q", len(all), all[0].Text, all[len(all)-1].Text)
	}
}
