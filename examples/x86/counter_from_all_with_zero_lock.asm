; A counter of threads that starts at N; who is inside has decremented it.
; Who is outside does not find 0 there: true with `lock`, for any number of threads.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (section 4, operations on counters)
; expect: sc holds, tso holds, pso holds

begin shared_data
    c dd N ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
enter: cmp dword [c], 0
       je bad
       lock dec dword [c]
       lock inc dword [c]
       jmp enter
bad:   nop
end thread_code
