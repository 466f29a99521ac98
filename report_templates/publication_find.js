// An address with two sides leads to the comparison in the first profile that has both.

async function lead() {
  const [a, b] = ["a", "b"].map((name) => state.read().get(name));
  if (a === null || b === null) {
    return;
  }
  const packed = Uint8Array.from(atob(document.getElementById("archive").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const profiles = JSON.parse(await new Response(stream).text());
  const found = profiles.find(([, ids]) => ids.includes(a) && ids.includes(b));
  if (found) {
    location.replace(`p/${encodeURIComponent(found[0])}/compare.html#?${new URLSearchParams({ a, b })}`);
  } else {
    document.getElementById("count").textContent = "No profile has results of both sides of this address.";
  }
}
addEventListener("hashchange", lead);
lead();
