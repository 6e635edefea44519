; A sense-reversing barrier that every thread passes once (Fig. 4): nobody has left
; while somebody has not yet come. `count` counts threads and starts with their number N.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017
; expect: sc holds (explicit: undecided), tso holds (explicit: undecided), pso holds (explicit: undecided)

begin shared_data
    sense dd 0
    count dd N ! as counter
end shared_data

begin unsafe_prop
    eip[$t1] = entr &&
    eip[$t2] = end
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
      mov esi, 0          ; esi = local sense
entr: not esi
      lock dec dword [count]
      jne spin
last: mov dword [count], N
      mov dword [sense], esi
      jmp end
spin: cmp dword [sense], esi
      jne spin
end:  nop
end thread_code
