package testkit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// harness is a page that opens a list of addresses in frames and replaces itself by their documents, in base64. An
// address ends with steps, each after a space: "width=N" (1200 by default), "click=SELECTOR", or a key. The attribute
// data-cut of a document lists the texts of columns and diagrams that are cut off or overflow.
const harness = `<body><script>
const opened = %s.map(address => new Promise(resolve => {
	const frame = document.body.appendChild(document.createElement("iframe"));
	const [at, ...keys] = address.split(" ");
	frame.width = (keys.find(key => key.startsWith("width=")) || "width=1200").slice(6); frame.height = 900;
	frame.onload = () => setTimeout(() => {
		for (const key of keys) {
			if (key.startsWith("width=")) continue;
			if (key.startsWith("click=")) { frame.contentDocument.querySelector(key.slice(6)).click(); continue; }
			const on = frame.contentDocument.activeElement;
			if (on.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true})) && key === "Enter") on.click();
		}
		const page = frame.contentDocument, cut = [];
		for (const e of page.querySelectorAll("#columns > span")) {
			if (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1 || e.getBoundingClientRect().right > page.querySelector("#matrix").getBoundingClientRect().right + 1) cut.push(e.textContent);
		}
		for (const drawing of page.querySelectorAll(".diagram svg")) {
			const lanes = [...drawing.querySelectorAll(".life")].map(l => l.x1.baseVal.value);
			for (const e of drawing.querySelectorAll("text")) {
				const {x, width} = e.getBBox(), middle = x + width / 2;
				const off = x < 0 || x + width > drawing.viewBox.baseVal.width;
				const next = e.classList.contains("head") ? Math.min(...lanes.filter(l => l > middle + 1)) - 8 : Infinity;
				if (off || x + width > next) cut.push(e.textContent);
			}
		}
		page.documentElement.dataset.cut = cut.join("; ");
		resolve(btoa(unescape(encodeURIComponent(frame.contentDocument.documentElement.outerHTML))));
	}, 1000);
	frame.src = at;
}));
Promise.all(opened).then(all => { document.body.innerHTML = all.map(text => "<p>" + text + "</p>").join(""); });
</script>`

// Browse opens addresses, relative to a folder of pages, in a browser. It returns the documents without scripts and
// data.
func Browse(t *testing.T, pages map[string][]byte, addresses []string) (documents []string) {
	t.Helper()
	browser, folder := Browser(t), t.TempDir()
	list, err := json.Marshal(addresses)
	Check(t, err)
	pages["all.html"] = fmt.Appendf(nil, harness, list)
	for name, text := range pages {
		file := filepath.Join(folder, filepath.FromSlash(name))
		Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		Check(t, os.WriteFile(file, text, 0o644))
	}
	c := exec.CommandContext(Context(t), browser, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage",
		"--allow-file-access-from-files", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom",
		"file://"+filepath.Join(folder, "all.html"))
	c.Env = append(os.Environ(), "TZ=UTC")
	c.WaitDelay = 5 * time.Second
	out, err := c.Output()
	if err != nil {
		Lacking(t, "a browser that opens a page:", err)
	}
	scripts := regexp.MustCompile(`(?s)<script.*?</script>`)
	for _, p := range regexp.MustCompile(`<p>([^<]*)</p>`).FindAllSubmatch(out, -1) {
		text, err := base64.StdEncoding.DecodeString(string(p[1]))
		Check(t, err)
		documents = append(documents, scripts.ReplaceAllString(string(text), ""))
	}
	if len(documents) != len(addresses) {
		t.Fatalf("%d of %d pages were opened:\n%.3000s", len(documents), len(addresses), out)
	}
	return documents
}
